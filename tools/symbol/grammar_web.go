package symbol

import "strings"

// phpGrammar names variables and properties without their $, because the other languages here have no such mark and people leave it
// out.
func phpGrammar() *grammar {
	named := field("name")
	variable := func(n *node, text string) []name { // requests name $n as n
		for _, k := range n.kids {
			if k.kind == "variable_name" {
				return []name{{strings.TrimPrefix(text[k.start:k.end], "$"), k.start}}
			}
		}
		return nil
	}
	return &grammar{name: "php", decls: map[string]decl{
		"class_declaration":     {kind: "class", names: named},
		"interface_declaration": {kind: "interface", names: named},
		"trait_declaration":     {kind: "class", names: named},
		"enum_declaration":      {kind: "enum", names: named},
		"enum_case":             {kind: "enumMember", names: named},
		"method_declaration": {kind: "method", names: named, sealed: true, kindOf: func(n *node, kind string) string {
			if k := n.child("name"); k != nil && k.word == "__construct" {
				return "constructor"
			}
			return kind
		}},
		"function_definition": {kind: "function", names: named, sealed: true},
		"const_element":       {kind: "constant", names: first("name")},
		"property_element":    {kind: "property", names: variable},
	}, wraps: map[string]bool{"const_declaration": false, "property_declaration": false},
		leads: map[string]byte{"comment": 'c', "attribute_list": 'd'}}
}

// first names by the first child of a kind.
func first(kind string) func(*node, string) []name {
	return func(n *node, text string) []name {
		for _, k := range n.kids {
			if k.kind == kind {
				return []name{{text[k.start:k.end], k.start}}
			}
		}
		return nil
	}
}

// rubyGrammar makes A::B the path A.B, as in every other language here. "private def f" is a call with the definition as its
// argument, so the call belongs to the definition.
func rubyGrammar() *grammar {
	named := func(n *node, text string) []name {
		k := n.child("name")
		if k == nil {
			return nil
		}
		return []name{{strings.ReplaceAll(text[k.start:k.end], "::", "."), k.end - len(lastOf(text[k.start:k.end]))}}
	}
	return &grammar{name: "ruby", decls: map[string]decl{
		"module":           {kind: "module", names: named},
		"class":            {kind: "class", names: named},
		"method":           {kind: "method", names: named, sealed: true, kindOf: outsideOfClass},
		"singleton_method": {kind: "method", names: named, sealed: true},
		"assignment": {kind: "constant", names: func(n *node, text string) []name {
			if k := n.child("left"); k != nil && k.kind == "constant" {
				return []name{{text[k.start:k.end], k.start}}
			}
			return nil
		}},
	}, wraps: map[string]bool{"call": false, "argument_list": false}, // private def f … end
		leads: map[string]byte{"comment": 'c'}}
}

// outsideOfClass makes a method that is in no class a function. A block counts as a class, because Class.new do … end and
// Struct.new do … end define methods in one.
func outsideOfClass(n *node, kind string) string {
	for p := n.parent; p != nil; p = p.parent {
		switch p.kind {
		case "class", "module", "singleton_class", "do_block", "block":
			return kind
		}
	}
	return "function"
}

// lastOf is the last part of a name like A::B.
func lastOf(name string) string { return name[strings.LastIndexByte(name, ':')+1:] }
