"""A text in every language that has a grammar, and what it defines.

That is the kind and name of each definition, indented as these lie in each other; what is no symbol
stands in parentheses.
"""

SNIPPETS = {
    "python": (
        """\
import os
LIMIT = 3
type Name = str
@decorated
class Foo(Base):
    size: int = 0
    def bar(self):
        local = 1
        def inner(): pass
async def main(): pass
def f(x=1): pass
fs = __import__("fs")
a, b = 1, 2
x.y = 3
Alias = Foo
""",
        """
constant LIMIT
type Name
class Foo
  constant size
  function bar
    function inner
function main
function f
constant x.y
constant Alias
""",
    ),
    "javascript": (
        """\
import x from "x";
const fs = require("fs");
const { join } = require("path");
const lazy = await import("./lazy.js");
export const LIMIT = 3;
export default class Foo extends Bar {
  size = 0;
  handler = () => { const local = 1; };
  constructor() { super(); }
  get bar() { return 1; }
  static async run() {}
  #secret() {}
}
export function main() { const local = 2; function inner() {} }
function* walk() {}
const f = (a) => a;
const g = async function () {};
app.handle = function handle(req) { return req; };
app.use = (x) => x;
Foo.prototype.baz = function () {};
exports.thing = function () {};
const table = { open: () => 1, close: function () {}, shut() {}, size: 3 };
let Klass = class { m() {} };
test("x", () => { const y = 1; });
""",
        """
constant LIMIT
class Foo
  property size
  function handler
  method constructor
  method bar
  method run
  method #secret
function main
  function inner
function walk
function f
function g
function app.handle
  function handle
function app.use
function Foo.prototype.baz
function exports.thing
constant table
  function open
  function close
  method shut
class Klass
  method m
""",
    ),
    "typescript": (
        """\
import { x } from "x";
import fs = require("fs");
export interface Shape { area: number; size(): number; }
export type Id = string | number;
export enum Color { Red, Green }
namespace Space { export const inner = 1; }
declare module "other" { }
abstract class Foo<T> implements Shape {
  private readonly size: number = 0;
  onClick = () => {};
  constructor(private a: string) {}
  abstract area(): number;
  bar<T>(x: T): T { return x; }
}
export function over(a: string): void;
export function over(a: any): void {}
export const f = <T,>(a: T): T => a;
declare function announced(): void;
const LIMIT: number = 3;
""",
        """
interface Shape
  property area
  method size
type Id
enum Color
namespace Space
  constant inner
namespace other
class Foo
  property size
  function onClick
  method constructor
  method area
  method bar
function over
function over
function f
function announced
constant LIMIT
""",
    ),
    "tsx": (
        """\
import React from "react";
interface Props { name: string }
export const Button: React.FC<Props> = ({ name }) => { return <b>{name}</b>; };
export default function App() { const [a, b] = useState(0); return <Button name="x" />; }
class Page extends React.Component { render() { return <div/>; } }
""",
        """
interface Props
  property name
function Button
function App
class Page
  method render
""",
    ),
    "go": (
        """\
package main
import "fmt"
const Limit = 3
const (
	A = iota
	B
)
var state, other int
type Shape interface {
	Area() float64
}
type Point struct { X, Y int }
type Alias = Point
type List[T any] struct { head T }
func (p *Point) Move(dx int) { local := 1; _ = local }
func (l *List[T]) Push(x T) {}
func main() { var v int; fmt.Println(v) }
""",
        """
constant Limit
constant A
constant B
variable state
type Shape
  method Area
type Point
type Alias
type List
method Point.Move
method List.Push
function main
""",
    ),
    "rust": (
        """\
use std::fmt;
pub const LIMIT: u32 = 3;
static STATE: u8 = 0;
type Alias = Vec<u8>;
macro_rules! shout { () => {}; }
#[derive(Debug)]
pub struct Point<T> { x: T }
union Bits { a: u8 }
enum Color { Red, Green(u8) }
pub trait Shape { type Unit; fn area(&self) -> f64; fn twice(&self) {} }
impl<T> Point<T> { pub fn new() -> Self { let local = 1; Self } }
impl<T> fmt::Display for Point<T> { fn fmt(&self) {} }
mod inner { pub fn deep() {} }
mod file;
extern "C" { fn outside(); }
#[cfg(test)]
mod tests { #[test] fn works() { const LOCAL: u8 = 1; fn nested() {} } }
""",
        """
constant LIMIT
constant STATE
type Alias
macro shout
struct Point
struct Bits
enum Color
  constant Red
  constant Green
trait Shape
  type Unit
  function area
  function twice
(impl Point)
  function new
(impl Point)
  function fmt
module inner
  function deep
module file
function outside
module tests
  function works
    function nested
""",
    ),
    "java": (
        """\
package a.b;
import java.util.List;
@interface Marked { int value(); }
public class Foo<T> extends Bar {
  private static final int LIMIT = 3, OTHER = 4;
  public Foo() {}
  @Override public <U> T bar(int x) { int local = 1; return null; }
  class Inner { void deep() {} }
}
interface Shape { int SIDES = 3; double area(); }
enum Color { RED, GREEN; Color next() { return RED; } }
record Point(int x, int y) { Point { } }
""",
        """
interface Marked
  method value
class Foo
  field LIMIT
  constructor Foo
  method bar
  class Inner
    method deep
interface Shape
  constant SIDES
  method area
enum Color
  constant RED
  constant GREEN
  method next
record Point
  constructor Point
""",
    ),
    "kotlin": (
        """\
package a.b
import x.y
const val LIMIT = 3
typealias Name = String
class Foo<T>(val a: Int) : Bar() {
    constructor(b: String) : this(1) {}
    val size: Int = 0
    fun bar(x: Int): Int { val local = 1; return x }
    companion object {
        fun create() = Foo(1)
    }
}
interface Shape { fun area(): Double }
enum class Color { RED, GREEN }
object Single { fun run() {} }
data class Point(val x: Int)
fun String.shout() = uppercase()
fun <T> generic(x: T) {}
val Foo.extra: Int get() = 1
""",
        """
property LIMIT
type Name
class Foo
  (constructor)
  property size
  function bar
  (object)
    function create
function area
""",
    ),
    "scala": (
        """\
package a.b
import x.y
class Foo[T](a: Int) extends Bar {
  val size = 0
  var count: Int = 1
  def bar(x: Int): Int = { val local = 1; x }
  type Unit2 = Int
}
object Single { def run(): Unit = {} }
trait Shape { def area: Double; val sides: Int }
case class Point(x: Int)
enum Color { case Red, Green }
given ordering: Ordering[Int] = null
extension (s: String) { def shout: String = s.toUpperCase }
""",
        """
class Foo
  value size
  value count
  function bar
  type Unit2
object Single
  function run
trait Shape
  function area
  value sides
class Point
enum Color
  constant Red
  constant Green
value ordering
(extension)
  function shout
""",
    ),
    "c": (
        """\
#include <stdio.h>
#define LIMIT 3
#define TWICE(x) ((x) * 2)
typedef unsigned int uint;
typedef struct { int x; } point_t;
typedef int (*callback)(int);
struct node { struct node *next; int value; };
union bits { int a; };
enum color { RED, GREEN = 2 };
static const char *names[] = { "a" };
int counter, other = 1;
struct node *head;
int announced(int a, char *b);
static void *make(size_t n) { int local = 1; struct node *x; return 0; }
int (*pick(int x))(void) { return 0; }
void (*handler)(int);
""",
        """
macro LIMIT
macro TWICE
type uint
type point_t
  (struct)
type callback
struct node
struct bits
enum color
  constant RED
  constant GREEN
declaration names
declaration counter
declaration head
function make
function pick
declaration handler
""",
    ),
    "cpp": (
        """\
#include <vector>
#define LIMIT 3
namespace space { namespace a::b {
template <typename T>
class Foo : public Bar {
 public:
  Foo();
  ~Foo() {}
  int size_ = 0;
  void bar(int x) const;
  int inl() { return 1; }
  bool operator==(const Foo& other) const { return true; }
};
template <typename T> Foo<T>::Foo() : size_(0) {}
void Foo::bar(int x) const { int local = 1; }
Foo& Foo::operator=(const Foo& o) { return *this; }
std::vector<int> ns::Foo<int>::list() { return {}; }
}}
struct Point { int x, y; };
class Forward;
enum class Color { Red, Green };
using Alias = std::vector<int>;
template <typename T> concept Small = sizeof(T) < 4;
int announced(int);
extern int global;
auto f = [](int x) { return x; };
int main() { return 0; }
""",
        """
macro LIMIT
namespace space
  namespace a::b
    class Foo
      function ~Foo
      field size_
      function inl
      function operator==
    function Foo::Foo
    function Foo::bar
    function Foo::operator=
    function ns::Foo::list
struct Point
  field x
enum Color
  constant Red
  constant Green
type Alias
type Small
declaration global
declaration f
function main
""",
    ),
    "objc": (
        """\
#import <Foundation/Foundation.h>
#define LIMIT 3
@protocol Shape
- (double)area;
@end
@interface Foo : NSObject <Shape>
@property (nonatomic) int size;
- (void)bar:(int)x with:(int)y;
@end
@implementation Foo
- (void)bar:(int)x with:(int)y { int local = 1; }
+ (Foo *)make { return nil; }
@end
typedef enum { Red, Green } Color;
static void helper(int x) { }
int main(void) { return 0; }
""",
        """
macro LIMIT
protocol Shape
  method area
class Foo
  property size
  method bar
class Foo
  method bar
  method make
type Color
  (enum)
    constant Red
    constant Green
function helper
function main
""",
    ),
    "csharp": (
        """\
using System;
namespace A.B {
  [Marked]
  public class Foo<T> : Bar {
    private const int Limit = 3;
    public int Size { get; set; } = 0;
    public Foo() {}
    ~Foo() {}
    public T Bar<U>(int x) { int local = 1; void Inner() {} return default; }
    public static Foo<T> operator +(Foo<T> a, Foo<T> b) => a;
    public int this[int i] => i;
    public event Action Changed;
    public delegate void Handler(int x);
  }
  interface IShape { double Area(); }
  struct Point { public int X; }
  record Pair(int A, int B);
  enum Color { Red, Green }
}
""",
        """
namespace A.B
  class Foo
    field Limit
    property Size
    constructor Foo
    constructor Foo
    method Bar
      function Inner
    (method)
    (property)
    event Changed
    delegate Handler
  interface IShape
    method Area
  struct Point
    field X
  record Pair
  enum Color
    constant Red
    constant Green
""",
    ),
    "swift": (
        """\
import UIKit
let limit = 3
typealias Name = String
class Foo<T>: Bar {
    var size: Int = 0
    init(a: Int) { let local = 1 }
    deinit {}
    func bar(_ x: Int) -> Int { return x }
    subscript(i: Int) -> Int { return i }
}
struct Point { let x: Int }
enum Color { case red, green }
protocol Shape { associatedtype Unit; var sides: Int { get }; func area() -> Double }
extension Foo { func extra() {} }
actor Worker { func run() async {} }
func main() {}
""",
        """
property limit
type Name
class Foo
  property size
  initializer init
  (initializer)
  function bar
  (subscript)
class Point
  property x
class Color
  constant red
protocol Shape
  type Unit
  property sides
  function area
(class Foo)
  function extra
class Worker
  function run
function main
""",
    ),
    "ruby": (
        """\
require "x"
LIMIT = 3
fs = require("fs")
module Space
  class Foo < Bar
    SIZE = 0
    attr_reader :a
    def initialize(a)
      local = 1
      @a = a
    end
    def self.make; end
    def ok?; end
    def ==(other); end
    class << self
      def inner; end
    end
  end
  class A::B; end
end
""",
        """
constant LIMIT
module Space
  class Foo
    constant SIZE
    method initialize
    method make
    method ok?
    (method)
    (class)
      method inner
  class B
""",
    ),
    "php": (
        r"""<?php
namespace A\B;
use X\Y;
const LIMIT = 3;
abstract class Foo extends Bar {
  const SIZE = 1, OTHER = 2;
  private ?int $size = 0;
  public function __construct(private int $a) { $local = 1; }
  abstract function area();
}
interface Shape { public function area(): float; }
trait Helps { function help() {} }
enum Color: string { case Red = 'r'; }
function main() { $f = function () {}; }
""",
        r"""
namespace A\B
constant LIMIT
class Foo
  constant SIZE
  constant OTHER
  property size
  method __construct
  method area
interface Shape
  method area
trait Helps
  method help
enum Color
  constant Red
function main
""",
    ),
    "lua": (
        """\
local json = require("json")
local M = {}
local LIMIT = 3
function M.bar(x) local inner = 1 end
function M:baz() end
M.foo = function(x) return x end
local function helper() end
local f = function() end
function main() end
M.sub.deep = function() end
return M
""",
        """
variable M
variable LIMIT
function M.bar
function M:baz
function M.foo
function helper
function f
function main
function M.sub.deep
""",
    ),
    "bash": (
        """\
#!/bin/bash
LIMIT=3
export NAME="x"
main() { local inner=1; other=2; }
function run { echo hi; }
function both() { :; }
""",
        """
variable LIMIT
variable NAME
function main
function run
function both
""",
    ),
    "elixir": (
        """\
defmodule My.Foo do
  use Bar
  alias X.Y
  @limit 3
  def bar(x) when x > 1, do: x
  def ok?(x), do: x
  defp hidden(x) do
    y = x
  end
  defmacro twice(x), do: x
  defguard is_small(x) when x < 3
  defdelegate size(x), to: Other
  def zero, do: 0
end
defprotocol Shape do
  def area(x)
end
defimpl Shape, for: Foo do
  def area(x), do: x
end
""",
        """
module My.Foo
  function bar
  function ok?
  function hidden
  macro twice
  guard is_small
  function size
  function zero
protocol Shape
  function area
implementation Shape
  function area
""",
    ),
    "haskell": (
        """\
module Main where
import Data.List
data Color = Red | Green Int
newtype Id = Id Int
type Name = String
class Shape a where
  area :: a -> Double
instance Shape Color where
  area x = 1
main :: IO ()
main = return ()
add :: Int -> Int -> Int
add x y = z where z = x + y
limit = 3
""",
        """
type Color
  constructor Red
  constructor Green
type Id
type Name
class Shape
  function area
(instance Shape)
  function area
function main
function main
function add
function add
  function z
function limit
""",
    ),
    "zig": (
        """\
const std = @import("std");
const limit: u32 = 3;
pub const Point = struct { x: i32, pub fn len(self: Point) i32 { const local = 1; return local; } };
var state: u8 = 0;
pub fn main() void {}
test "it works" { const y = 1; }
test main {}
""",
        """
constant limit
constant Point
  field x
  function len
constant state
function main
(test)
(test)
""",
    ),
    "sql": (
        """\
CREATE TABLE users (id INT, name TEXT);
CREATE TABLE app.orders (id INT);
CREATE VIEW active AS SELECT * FROM users;
CREATE MATERIALIZED VIEW totals AS SELECT 1;
CREATE INDEX by_name ON users (name);
CREATE FUNCTION add(a INT) RETURNS INT AS $$ SELECT a $$ LANGUAGE sql;
CREATE TYPE mood AS ENUM ('sad', 'ok');
CREATE SCHEMA app;
CREATE TRIGGER touched BEFORE UPDATE ON users FOR EACH ROW EXECUTE FUNCTION touch();
SELECT 1;
""",
        """
table users
table app.orders
view active
view totals
index by_name
function add
type mood
schema app
trigger touched
""",
    ),
    "dart": (
        """\
import 'x.dart';
const limit = 3;
typedef Name = String;
class Foo extends Bar {
  int size = 0;
  Foo(this.size);
  Foo.named();
  const Foo.fixed();
  factory Foo.make() => Foo(1);
  int get bar => 1;
  set bar(int x) {}
  void run() { var local = 1; }
}
mixin Helps {}
extension Extra on Foo { void more() {} }
enum Color { red, green }
void main() {}
""",
        """
type Name
class Foo
  constructor Foo
  constructor Foo
  constructor Foo
  factory Foo
  function bar
  function bar
  function run
class Helps
(class Extra)
  function more
enum Color
function main
""",
    ),
    "julia": (
        """\
module Space
using X
const LIMIT = 3
struct Point
    x::Int
end
mutable struct Node{T} end
abstract type Shape end
function area(s::Point)
    local_ = 1
end
short(x) = x
macro twice(x)
end
function Base.show(io::IO, p::Point) end
end
""",
        """
module Space
  struct Point
  struct Node
  struct Shape
  function area
  macro twice
  (function)
""",
    ),
    "ocaml": (
        """\
open List
let limit = 3
let add x y = let z = x in z + y
let rec fact n = n
type color = Red | Green of int
type point = { x : int }
exception Broken of string
module Inner = struct let deep = 1 end
class foo = object method bar = 1 end
""",
        """
value limit
value add
value fact
type color
type point
exception Broken
module Inner
  value deep
class foo
""",
    ),
    "perl": (
        """\
package My::Foo;
use strict;
my $limit = 3;
sub bar { my $local = 1; }
sub new { my ($class) = @_; }
1;
""",
        """
function bar
function new
""",
    ),
    "powershell": (
        """\
$limit = 3
function Get-Thing($x) { $local = 1 }
class Foo { [int]$size; [void] Bar() {} Foo() {} }
enum Color { Red }
""",
        """
function Get-Thing
class Foo
  method Bar
  method Foo
enum Color
""",
    ),
    "groovy": (
        """\
package a.b
class Foo { int size = 0; def bar(x) { def local = 1 }
 void run(int x) {} }
def main(args) { }
""",
        """
class Foo
  function bar
  function run
function main
""",
    ),
    "proto": (
        """\
syntax = "proto3";
package a.b;
message Point { int32 x = 1; message Inner { } enum Kind { A = 0; } }
enum Color { RED = 0; }
service Shapes { rpc Area (Point) returns (Point); }
""",
        """
message Point
  message Inner
  enum Kind
enum Color
service Shapes
  method Area
""",
    ),
    "graphql": (
        """\
type Query { a: Int }
input New { b: Int }
interface Node { id: ID }
enum Color { RED }
scalar Date
union Any = Query | Other
directive @marked on FIELD
extend type Query { more: Int }
""",
        """
type Query
type New
type Node
enum Color
type Date
type Any
directive marked
""",
    ),
    "solidity": (
        """\
pragma solidity ^0.8.0;
contract Foo is Bar {
  uint256 public size = 0;
  event Moved(uint x);
  error Broken(uint x);
  struct Point { uint x; }
  enum Color { Red }
  constructor() {}
  modifier only() { _; }
  function bar(uint x) public { uint local = 1; }
}
library Helps { function help() internal {} }
interface IShape { function area() external; }
""",
        """
contract Foo
  variable size
  event Moved
  error Broken
  struct Point
  enum Color
  (function)
  function only
  function bar
contract Helps
  function help
contract IShape
  function area
""",
    ),
    "vim": (
        """\
let g:limit = 3
function! my#foo(x) abort
  let l:y = 1
endfunction
function s:hidden()
endfunction
""",
        """
function my#foo
function s:hidden
""",
    ),
    "terraform": (
        """\
resource "aws_s3_bucket" "logs" {
  bucket = "x"
  versioning {
    enabled = true
  }
}
variable "name" {}
""",
        """
(block resource "aws_s3_bucket" "logs")
  (block versioning)
(block variable "name")
""",
    ),
    "css": (
        """\
.a, #b > c {
  color: red;
}
@media (min-width: 1px) {
  .d {
    color: blue;
  }
}
@keyframes spin {
  from { top: 0 }
}
""",
        """
(rule .a, #b > c)
(media @media (min-width: 1px))
  (rule .d)
(keyframes @keyframes spin)
""",
    ),
    "scss": (
        """\
@mixin big($x) {
  width: $x;
}
@function twice($x) {
  @return $x * 2;
}
.a {
  &:hover {
    color: red;
  }
}
""",
        """
(mixin @mixin big($x))
(function @function twice($x))
(rule .a)
  (rule &:hover)
""",
    ),
    "html": (
        """\
<!DOCTYPE html>
<html>
<style>
.a { top: 0 }
</style>
<body class="x">
<script>
function main() { }
const LIMIT = 3;
</script>
</body>
</html>
""",
        """
(element html)
  (element style)
  (element body class="x")
    (element script)
      function main
      constant LIMIT
""",
    ),
    "vue": (
        """\
<template>
  <div>hi</div>
</template>
<script setup lang="ts">
import x from "x";
const limit: number = 3;
function main() {}
</script>
<style scoped>
.a { top: 0 }
</style>
""",
        """
(element template)
(element script setup lang="ts")
  constant limit
  function main
(element style scoped)
""",
    ),
    "svelte": (
        """\
<script lang="ts">
  export let name: string;
  function main() {}
</script>
<h1>Hello</h1>
<style>
.a { top: 0 }
</style>
""",
        """
(element script lang="ts")
  constant name
  function main
(element h1>Hello</h1)
(element style)
""",
    ),
    "toml": (
        """\
title = "x"
[server]
port = 1
[[products]]
name = "a"
""",
        """
(table server)
(table products)
""",
    ),
    "yaml": (
        """\
name: x
jobs:
  build:
    steps:
      - run: make
        with:
          deep: 1
""",
        """
(key name: x)
(key jobs)
  (key build)
    (key steps)
      (key run: make)
      (key with)
        (key deep: 1)
""",
    ),
    "json": (
        """\
{
  "name": "x",
  "scripts": {
    "test": {
      "deep": 1
    }
  }
}
""",
        """
(key "name": "x")
(key scripts)
  (key test)
    (key "deep": 1)
""",
    ),
    "notebook": (
        """\
{
 "cells": [
  {
   "cell_type": "markdown",
   "metadata": {"a": {}},
   "source": ["# T"]
  },
  {
   "cell_type": "code",
   "outputs": [{"data": {}}],
   "source": ["x = 1"]
  }
 ],
 "metadata": {"kernelspec": {"name": "python3"}}
}
""",
        """
(cell)
(cell)
""",
    ),
}
