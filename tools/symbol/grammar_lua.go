package symbol

import "strings"

// luaGrammar names M.sub:name by the path M.sub.name. Lua has no classes.
func luaGrammar() *grammar {
	// M.sub:name and M.sub.name mean the same place; requests use dots.
	named := func(n *node, text string) []name {
		var out []name
		for _, k := range n.kids {
			if k.field != "name" {
				continue
			}
			said := text[k.start:k.end]
			if strings.ContainsAny(said, "[( \t\r\n") {
				continue // a computed name, or one that continues on the next line
			}
			last := said[strings.LastIndexAny(said, ".:")+1:]
			out = append(out, name{strings.ReplaceAll(said, ":", "."), k.end - len(last)})
		}
		return out
	}
	valued := func(n *node, kind string) string {
		if v := n.child("value"); v != nil && v.kind == "function" {
			return "function"
		}
		return kind
	}
	return &grammar{name: "lua", decls: map[string]decl{
		"function_statement": {kind: "function", names: named, sealed: true, kindOf: func(n *node, kind string) string {
			if f := n.child("name"); f != nil && f.find("table_colon") != nil {
				return "method"
			}
			return kind
		}},
		"variable_declaration": {kind: "variable", names: named, sealed: true, kindOf: valued},
		"field": {kind: "property", sep: ",", in: "fieldlist", sealed: true, kindOf: valued, names: func(n *node, text string) []name {
			if v := n.child("value"); v == nil || v.kind != "function" && v.kind != "tableconstructor" {
				return nil // a plain value is data
			}
			return named(n, text)
		}},
	}, trim: true, wraps: map[string]bool{}, leads: map[string]byte{"comment": 'c', "emmy_documentation": 'c'}}
}
