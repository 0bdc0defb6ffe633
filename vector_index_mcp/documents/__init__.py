"""The tool set for collections of documents: what belongs to one, how it is searched and answered.

Which folders are a collection, which contexts describe them, and how an answer is worded. Must not
know who is connected and how, nor any other tool set.
"""
