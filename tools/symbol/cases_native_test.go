package symbol

// nativeCuts are of Python, C++, Rust and shell.
var nativeCuts = []cutText{
	{"a.py", `"""Module."""
import os

# The limit.
LIMIT: int = 3


@app.route("/")
@login_required
async def index(request):
    """Doc."""
    def inner():
        return 1
    return inner()


class Cart(Base, metaclass=Meta):
    """Doc."""

    total = 0

    @property
    def count(self) -> int:
        return 1

    @count.setter
    def count(self, n):
        pass

    class Item:
        def price(self): return 1

    # A note.
    @staticmethod
    def make(): ...


if LIMIT:
    def late():
        pass
`, []cut{
		{"a decorated coroutine keeps its decorators", "index", "replace", "async def index(request):\n    return 2", "    \"\"\"Doc.\"\"\"\n    def inner():\n        return 1\n    return inner()", "    return 2", ""},
		{"decorators are replaced with it", "index", "replace", "@app.post(\"/\")\ndef index():\n    return 2", "@app.route(\"/\")\n@login_required\nasync def index(request):\n    \"\"\"Doc.\"\"\"\n    def inner():\n        return 1\n    return inner()", "@app.post(\"/\")\ndef index():\n    return 2", ""},
		{"a function inside a function", "index.inner", "replace", "def inner():\n    return 2", "        return 1\n    return", "        return 2\n    return", ""},
		{"a class variable", "Cart.total", "delete", "", "    total = 0\n\n", "", ""},
		{"a method of an inner class", "Cart.Item.price", "replace", "def price(self):\n    return 2", "def price(self): return 1", "def price(self):\n            return 2", ""},
		{"a decorated method with its comment", "make", "delete", "", "\n    # A note.\n    @staticmethod\n    def make(): ...\n", "", ""},
		{"before a decorated function", "index", "before", "x = 1", "@app.route", "x = 1\n\n@app.route", ""},
		{"an annotated constant", "LIMIT", "replace", "LIMIT = 4", "LIMIT: int = 3", "LIMIT = 4", ""},
		{"under a condition", "late", "replace", "def late():\n    return 1", "def late():\n        pass", "def late():\n        return 1", ""},
		{"a class after a class", "Cart", "after", "class Other:\n    pass", "def make(): ...\n", "def make(): ...\n\nclass Other:\n    pass\n", ""},
	}},
	{"a.cpp", `#include "a.h"

namespace shop {

/// A cart.
template <typename T, int N = 3>
class Cart : public Base<T> {
 public:
  explicit Cart(int n);
  ~Cart();
  // Size.
  [[nodiscard]] int size() const noexcept { return n_; }
  T& operator[](int i);

 private:
  int n_;
};

template <typename T, int N>
Cart<T, N>::Cart(int n) : n_(n) {}

template <typename T, int N>
T& Cart<T, N>::operator[](int i) {
  return items_[i];
}

enum class Kind {
  kA,  // first
  kB,
};

int* find(int a) { return nullptr; }

}  // namespace shop

bool shop::Door::open(const Key& k) const {
  return true;
}

static const int kMax = 3;
`, []cut{
		{"a template with its comment", "Cart", "before", "struct Item {};", "/// A cart.\n", "struct Item {};\n\n/// A cart.\n", ""},
		{"a method inside the class", "Cart.size", "replace", "[[nodiscard]] int size() const { return 0; }", "int size() const noexcept { return n_; }", "int size() const { return 0; }", ""},
		{"a destructor", "~Cart", "delete", "", "  ~Cart();\n", "", ""},
		{"an operator out of its class", "Cart.operator[]", "many", "", "", "", "2"},
		{"a method out of its class", "shop::Door::open", "replace", "bool shop::Door::open() { return 0; }", "bool shop::Door::open(const Key& k) const {\n  return true;\n}", "bool shop::Door::open() { return 0; }", ""},
		{"the same by the end of its path", "Door::open", "delete", "", "bool shop::Door::open(const Key& k) const {\n  return true;\n}\n\n", "", ""},
		{"a function in a namespace", "shop::find", "replace", "int* find(int a) { return &a; }", "return nullptr;", "return &a;", ""},
		{"an enumerator keeps its comma", "Kind.kB", "replace", "kB = 2", "kB,", "kB = 2,", ""},
		{"after an enumerator with a comment", "Kind::kA", "after", "kX", "kA,  // first\n", "kA,  // first\n  kX,\n", ""},
		{"a constant", "kMax", "delete", "", "\nstatic const int kMax = 3;\n", "", ""},
	}},
	{"a.rs", `//! Crate.
use std::fmt;

/// A stack.
#[derive(Debug, Clone)]
pub struct Stack<T> {
    items: Vec<T>,
    pub len: usize
}

impl<T: Clone> Stack<T> {
    /// Makes one.
    #[must_use]
    pub const fn new() -> Self {
        Self { items: vec![], len: 0 }
    }
}

impl<T> fmt::Display for Stack<T> {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result { Ok(()) }
}

pub enum Op {
    Push(i32),
    Pop,
}

#[cfg(test)]
mod tests {
    #[test]
    fn works() {}
}
`, []cut{
		{"a method of an impl keeps its attribute", "Stack.new", "replace", "pub fn new() -> Self { todo!() }", "pub const fn new() -> Self {\n        Self { items: vec![], len: 0 }\n    }", "pub fn new() -> Self { todo!() }", ""},
		{"a method of a trait", "Stack::fmt", "delete", "", "    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result { Ok(()) }\n", "", ""},
		{"after the last field without a comma", "Stack.len", "after", "cap: usize", "    pub len: usize\n", "    pub len: usize,\n    cap: usize\n", ""},
		{"a variant", "Op.Push", "delete", "", "    Push(i32),\n", "", ""},
		{"a test in a module", "tests::works", "replace", "#[test]\n#[ignore]\nfn works() {}", "    #[test]\n    fn", "    #[test]\n    #[ignore]\n    fn", ""},
		{"a struct with its doc and attribute", "Stack", "before", "const X: i32 = 1;", "/// A stack.", "const X: i32 = 1;\n\n/// A stack.", ""},
	}},
	{"a.sh", "#!/bin/bash\n\n# Says.\nfunction hello {\n  local who=$1\n  echo \"$who\"\n}\n\nbye() { :; }\nexport HOME_DIR=/x\nA=1 B=2\n", []cut{
		{"a function", "hello", "replace", "hello() {\n  echo hi\n}", "function hello {\n  local who=$1\n  echo \"$who\"\n}", "hello() {\n  echo hi\n}", ""},
		{"a function with its comment", "hello", "delete", "", "# Says.\nfunction hello {\n  local who=$1\n  echo \"$who\"\n}\n\n", "", ""},
		{"after a short one", "bye", "after", "again() { :; }", "bye() { :; }\n", "bye() { :; }\n\nagain() { :; }\n", ""},
		{"an exported variable", "HOME_DIR", "replace", "export HOME_DIR=/y", "/x", "/y", ""},
	}},
}
