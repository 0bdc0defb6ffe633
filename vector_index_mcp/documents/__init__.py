"""The tool set for collections of documents: configuration, search, answers, MCP tools and REST.

It knows which folders are a collection, which contexts describe them, and how answers are worded.
Must not know who is connected and how, nor any other tool set.
"""
