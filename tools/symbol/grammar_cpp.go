package symbol

import "strings"

// cppGrammar adds to C everything whose name has several parts: namespaces, members declared outside their class, templates. It
// starts from cGrammar and replaces only what differs, so that a correction for C is also one for C++.
func cppGrammar() *grammar {
	g := cGrammar()
	g.name = "cpp"
	whole := g.decls["struct_specifier"]
	scoped := func(n *node, text string) []name { // as in C, with scopes
		var out []name
		for _, k := range n.kids {
			if k.field != "declarator" {
				continue
			}
			if nm, ok := declaratorName(k, text); ok {
				out = append(out, nm)
			}
		}
		return out
	}
	for _, kind := range []string{"function_definition", "declaration", "type_definition", "field_declaration"} {
		d := g.decls[kind]
		d.names = scoped
		g.decls[kind] = d
	}
	outer := g.decls["declaration"].kindOf
	plain := g.decls["declaration"]
	plain.kindOf = func(n *node, kind string) string { // constructors and templates inside a class
		if kind = outer(n, kind); kind == "function" && (n.parent.kind == "field_declaration_list" || n.parent.parent != nil && n.parent.kind == "template_declaration" && n.parent.parent.kind == "field_declaration_list") {
			return "method"
		}
		return kind
	}
	g.decls["declaration"] = plain
	f := g.decls["field_declaration"]
	f.kindOf = func(n *node, kind string) string {
		if n.find("function_declarator") != nil {
			return "method"
		}
		return kind
	}
	g.decls["field_declaration"] = f
	fn := g.decls["function_definition"]
	fn.kindOf = func(n *node, kind string) string {
		for p := n.parent; p != nil; p = p.parent {
			if p.kind == "field_declaration_list" {
				return "method"
			}
		}
		if d := n.child("declarator"); d != nil && d.find("qualified_identifier") != nil && strings.HasPrefix(d.kind, "function") {
			return "method"
		}
		return kind
	}
	g.decls["function_definition"] = fn
	g.decls["inline_method_definition"] = fn
	g.decls["class_specifier"] = decl{kind: "class", names: whole.names}
	g.decls["namespace_definition"] = decl{kind: "namespace", names: func(n *node, text string) []name {
		if k := n.child("name"); k != nil {
			return []name{{strings.ReplaceAll(text[k.start:k.end], "::", "."), k.start}}
		}
		return nil
	}}
	g.decls["alias_declaration"] = decl{kind: "class", names: field("name")}
	g.decls["concept_definition"] = decl{kind: "interface", names: field("name")}
	g.wraps = map[string]bool{"template_declaration": false, "friend_declaration": false}
	g.leads["attribute_declaration"] = 'd'
	return g
}

// declaratorName finds the name in pointers, references, arrays, functions and scopes: A<T>::f becomes A.f. The loop ends because
// every step goes to a child. ok is false if the declarator has no name, as in a function type.
func declaratorName(k *node, text string) (name, bool) {
	var scope []string
	for k != nil {
		switch k.kind {
		case "qualified_identifier", "template_type", "template_function", "template_method":
			if s := k.child("scope"); s != nil {
				scope = append(scope, clean(text[s.start:s.end]))
			}
			k = k.child("name")
			continue
		case "identifier", "field_identifier", "type_identifier", "destructor_name", "operator_name":
			own := strings.Join(strings.Fields(text[k.start:k.end]), "")
			return name{strings.Join(append(scope, own), "."), k.start}, true
		case "operator_cast":
			own := text[k.start:k.end]
			if i := strings.IndexByte(own, '('); i > 0 {
				own = own[:i]
			}
			return name{strings.Join(append(scope, strings.TrimSpace(own)), "."), k.start}, true
		}
		next := k.child("declarator")
		if next == nil { // the grammar has no field for the inner declarator of references and parentheses
			for _, c := range k.kids {
				if strings.HasSuffix(c.kind, "declarator") || strings.HasSuffix(c.kind, "identifier") || strings.HasSuffix(c.kind, "_name") {
					next = c
					break
				}
			}
		}
		k = next
	}
	return name{}, false
}

// cssGrammar names a rule by its selectors, as they are written. For a rule inside @media the path is the media query, then the
// selector. White space in selectors is folded, so that a selector on several lines can be asked for on one.
func cssGrammar() *grammar {
	head := func(n *node, text string) []name {
		end := n.start
		for _, k := range n.kids {
			if k.kind == "block" || k.kind == "keyframe_block_list" {
				break
			}
			end = k.end
		}
		said := strings.Join(strings.Fields(text[n.start:end]), " ")
		if said == "" {
			return nil
		}
		return []name{{said, n.start}}
	}
	rule := decl{kind: "rule", names: head, raw: true}
	return &grammar{name: "css", decls: map[string]decl{
		"rule_set": rule, "media_statement": rule, "supports_statement": rule, "keyframes_statement": rule, "at_rule": rule, "keyframe_block": rule,
		"declaration": {kind: "property", raw: true, names: func(n *node, text string) []name {
			if len(n.kids) == 0 || n.kids[0].kind != "property_name" {
				return nil
			}
			k := n.kids[0]
			return []name{{text[k.start:k.end], k.start}}
		}},
	}, wraps: map[string]bool{}, leads: map[string]byte{"comment": 'c'}}
}
