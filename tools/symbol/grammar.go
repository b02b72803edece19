package symbol

import (
	"path/filepath"
	"strings"
)

// grammar says which nodes of a language's syntax tree are declarations. The names of nodes are those of the grammar's own
// node-types.json. They can change with its version; the tests then fail because a declaration is missing from an outline.
type grammar struct {
	name  string
	decls map[string]decl
	// wraps are nodes that belong to the declaration inside them. If there are several declarations inside, true means that each
	// can be cut out alone, and false that they can only be cut out together.
	wraps map[string]bool
	leads map[string]byte // nodes before a declaration that belong to it: 'c' comment, 'd' decorator
	trim  bool            // the grammar's tokens include the white space before them, which trim removes
	// pieces: a run of whole top-level lines is a text of the language by itself.
	pieces bool
	// keys outlines a text without a syntax tree; nil: use the tree.
	keys func(text string) ([]Symbol, error)
}

// decl is a kind of declaration. sealed marks all declarations inside it as Local: Find lists them last, because other code cannot
// name them.
type decl struct {
	kind   string
	names  func(n *node, text string) []name
	kindOf func(n *node, kind string) string // nil: kind
	sealed bool                              // declarations inside are Local
	silent bool                              // it is part of the name path but not a symbol, such as an impl block
	raw    bool                              // the name is one part of the path, even if it contains separators
	sep    string                            // the separator between it and the next one, if the parent is a list
	in     string                            // sep applies only inside this kind of node
}

// name is a declared name and its offset in bytes.
type name struct {
	text string
	at   int
}

// grammarOf is the grammar for a file; nil if there is none. C# (5.6 MB) and other large grammars are left out to keep the binary
// small; Lines widens the language server's ranges for them. A header .h is read as C++, because that grammar also reads C, and the
// one of C would miss classes.
func grammarOf(path string) *grammar {
	switch strings.ToLower(filepath.Ext(path)) {
	case ".go":
		return goGrammar()
	case ".ts", ".mts", ".cts":
		return scriptGrammar("typescript")
	case ".tsx":
		return scriptGrammar("tsx")
	case ".js", ".jsx", ".mjs", ".cjs":
		return scriptGrammar("javascript")
	case ".py", ".pyi":
		return pythonGrammar()
	case ".rs":
		return rustGrammar()
	case ".c":
		return cGrammar()
	case ".cpp", ".cc", ".cxx", ".c++", ".h", ".hh", ".hpp", ".hxx", ".h++", ".cu", ".ipp", ".inl":
		return cppGrammar()
	case ".css":
		return cssGrammar()
	case ".json", ".jsonc", ".json5", ".webmanifest":
		return &grammar{name: "json", keys: jsonKeys}
	case ".yaml", ".yml":
		return &grammar{name: "yaml", keys: yamlKeys}
	case ".java":
		return javaGrammar()
	case ".php", ".phtml":
		return phpGrammar()
	case ".rb", ".rake", ".gemspec", ".ru":
		return rubyGrammar()
	case ".sh", ".bash", ".ksh":
		return bashGrammar()
	case ".lua":
		return luaGrammar()
	}
	return nil
}

// remark begins a comment that ends with its line. It is used only for languages whose lists have separators, see ownLines.
func (g *grammar) remark() string {
	if g.name == "lua" {
		return "--"
	}
	return "//"
}

// Supported reports whether there is a grammar for the file.
func Supported(path string) bool { return hasParser && grammarOf(path) != nil }

// field names a declaration by its children in a field, if they are plain names. A destructuring pattern ({a, b} = c) is left out,
// because its names cannot be cut out one by one. Quotes around a property's name are not part of the name; the offset points to
// the character after the quote.
func field(f string) func(*node, string) []name {
	return func(n *node, text string) []name {
		var out []name
		for _, k := range n.kids {
			if k.field == f && !strings.HasSuffix(k.kind, "_pattern") {
				said := text[k.start:k.end]
				bare := strings.TrimLeft(said, `"'#`)
				out = append(out, name{clean(strings.Trim(said, `"'#`)), k.start + len(said) - len(bare)})
			}
		}
		return out
	}
}

// goGrammar names methods by their receiver's type without the pointer mark (Server.Start). Split converts gopls's (*Server).Start
// to the same path, so both spellings find the method.
func goGrammar() *grammar {
	named := field("name")
	return &grammar{name: "go", pieces: true, decls: map[string]decl{
		"function_declaration": {kind: "function", names: named, sealed: true},
		"method_declaration": {kind: "method", sealed: true, names: func(n *node, text string) []name {
			list := named(n, text)
			if r := n.child("receiver"); r != nil && len(list) == 1 {
				if t := r.find("type_identifier"); t != nil {
					list[0].text = text[t.start:t.end] + "." + list[0].text
				}
			}
			return list
		}},
		"type_spec": {kind: "class", names: named, kindOf: func(n *node, kind string) string {
			if t := n.child("type"); t != nil && (t.kind == "struct_type" || t.kind == "interface_type") {
				return strings.TrimSuffix(t.kind, "_type")
			}
			return kind
		}},
		"type_alias": {kind: "class", names: named},
		"field_declaration": {kind: "field", names: func(n *node, text string) []name {
			if list := named(n, text); len(list) > 0 || n.parent.kind != "field_declaration_list" {
				return list
			}
			t := n.child("type") // an embedded type has the name of the type
			for t != nil && t.kind != "type_identifier" {
				switch t.kind {
				case "qualified_type":
					t = t.child("name")
				case "generic_type":
					t = t.child("type")
				default:
					t = nil
				}
			}
			if t == nil {
				return nil
			}
			return []name{{text[t.start:t.end], t.start}}
		}},
		"method_elem": {kind: "method", names: named},
		"method_spec": {kind: "method", names: named},
		"const_spec":  {kind: "constant", names: named},
		"var_spec":    {kind: "variable", names: named},
	}, wraps: map[string]bool{"type_declaration": true, "const_declaration": true, "var_declaration": true, "var_spec_list": true},
		leads: map[string]byte{"comment": 'c'}}
}

// scriptGrammar is for JavaScript, TypeScript and TSX. A variable that holds a function counts as a function, because people call
// it one. Functions that are assigned to a member (exports.f = …, A.prototype.f = …) count too, because CommonJS code declares
// functions in this way. Plain values in objects do not count: the outline of a data file would be as long as the file.
func scriptGrammar(lang string) *grammar {
	named := field("name")
	property := field("property")
	valued := func(n *node, kind string) string {
		if v := n.child("value"); v != nil {
			switch v.kind {
			case "arrow_function", "function", "function_expression", "generator_function":
				return "function"
			case "class":
				return "class"
			}
		}
		return kind
	}
	g := &grammar{name: lang, pieces: true, decls: map[string]decl{
		"function_declaration":           {kind: "function", names: named, sealed: true},
		"generator_function_declaration": {kind: "function", names: named, sealed: true},
		"function_signature":             {kind: "function", names: named},
		"class_declaration":              {kind: "class", names: named},
		"abstract_class_declaration":     {kind: "class", names: named},
		"interface_declaration":          {kind: "interface", names: named},
		"enum_declaration":               {kind: "enum", names: named},
		"type_alias_declaration":         {kind: "class", names: named},
		"internal_module":                {kind: "namespace", names: named},
		"module":                         {kind: "namespace", names: named},
		"method_definition": {kind: "method", names: named, sealed: true, kindOf: func(n *node, kind string) string {
			// A method of an object literal may also be named "constructor", where it has no special meaning. So the kind depends
			// on the parent.
			if c := n.child("name"); c != nil && c.end-c.start == len("constructor") && c.kind == "property_identifier" && n.parent.kind == "class_body" && c.word == "constructor" {
				return "constructor"
			}
			return kind
		}},
		"method_signature":          {kind: "method", names: named},
		"abstract_method_signature": {kind: "method", names: named},
		"property_signature":        {kind: "property", names: named},
		"public_field_definition":   {kind: "property", names: named, kindOf: valued, sealed: true},
		"field_definition":          {kind: "property", names: property, kindOf: valued, sealed: true},
		"pair": {kind: "property", sep: ",", in: "object", sealed: true, kindOf: valued, names: func(n *node, text string) []name {
			if v := n.child("value"); v == nil || v.kind != "object" && valued(n, "") == "" {
				return nil // a plain value is data
			}
			return field("key")(n, text)
		}},
		"assignment_expression": {kind: "function", sealed: true, names: func(n *node, text string) []name {
			l, r := n.child("left"), n.child("right")
			if l == nil || r == nil || l.kind != "member_expression" || n.parent.kind != "expression_statement" {
				return nil
			}
			if k := valued(&node{kids: []*node{{kind: r.kind, field: "value"}}}, ""); k == "" {
				return nil
			}
			said := text[l.start:l.end]
			bare := strings.TrimPrefix(strings.TrimPrefix(said, "module."), "exports.")
			if strings.ContainsAny(said, " \n([") || bare == "exports" {
				return nil
			}
			return []name{{strings.Replace(bare, ".prototype.", ".", 1), l.end - len(said[strings.LastIndexByte(said, '.')+1:])}}
		}},
		"export_statement": {kind: "variable", sealed: true, names: func(n *node, text string) []name {
			// An export with a name is found as its declaration; only a default export without a name is a symbol itself.
			if n.child("declaration") != nil && n.child("declaration").child("name") != nil {
				return nil
			}
			for _, k := range n.kids {
				if k.kind == "default" {
					return []name{{"default", k.start}}
				}
			}
			return nil
		}, kindOf: func(n *node, kind string) string {
			for _, k := range n.kids {
				switch k.kind {
				case "class":
					return "class"
				case "arrow_function", "function", "function_expression", "generator_function", "function_declaration":
					return "function"
				}
			}
			return valued(n, kind)
		}},
		"enum_assignment": {kind: "enumMember", names: named, sep: ",", in: "enum_body"},
		"property_identifier": {kind: "enumMember", sep: ",", in: "enum_body", names: func(n *node, text string) []name {
			if n.parent.kind != "enum_body" {
				return nil
			}
			return []name{{text[n.start:n.end], n.start}}
		}},
		"variable_declarator": {kind: "variable", names: named, sealed: true, kindOf: func(n *node, kind string) string {
			if k := valued(n, kind); k != kind {
				return k
			}
			if n.parent.kind == "lexical_declaration" && len(n.parent.kids) > 0 && n.parent.kids[0].kind == "const" {
				return "constant"
			}
			return kind
		}},
	}, wraps: map[string]bool{"export_statement": false, "ambient_declaration": false, "lexical_declaration": false, "variable_declaration": false, "expression_statement": false},
		leads: map[string]byte{"comment": 'c', "decorator": 'd'}}
	if lang == "javascript" {
		delete(g.decls, "module")
	}
	return g
}

// pythonGrammar counts a function inside a class as a method, even if a decorator or an if is between them. Inside another function
// it is local, so the search for a class ends there.
func pythonGrammar() *grammar {
	return &grammar{name: "python", pieces: true, decls: map[string]decl{
		"function_definition": {kind: "function", names: field("name"), sealed: true, kindOf: func(n *node, kind string) string {
			for p := n.parent; p != nil; p = p.parent {
				if p.kind == "class_definition" {
					return "method"
				}
				if p.kind == "function_definition" {
					break
				}
			}
			return kind
		}},
		"class_definition": {kind: "class", names: field("name")},
		"assignment": {kind: "variable", names: func(n *node, text string) []name {
			if l := n.child("left"); l != nil && l.kind == "identifier" && n.parent.kind == "expression_statement" {
				return []name{{text[l.start:l.end], l.start}}
			}
			return nil
		}},
	}, wraps: map[string]bool{"decorated_definition": false, "expression_statement": false},
		leads: map[string]byte{"comment": 'c', "decorator": 'd'}}
}

// rustGrammar lists the methods of an impl block under the type, because a person asks for Type::method and not for an impl block.
// The block itself is not a symbol: a type may have many.
func rustGrammar() *grammar {
	named := field("name")
	return &grammar{name: "rust", pieces: true, decls: map[string]decl{
		"function_item":           {kind: "function", names: named, sealed: true},
		"function_signature_item": {kind: "function", names: named},
		"struct_item":             {kind: "struct", names: named},
		"union_item":              {kind: "struct", names: named},
		"enum_item":               {kind: "enum", names: named},
		"trait_item":              {kind: "interface", names: named},
		"impl_item":               {kind: "impl", names: field("type"), silent: true},
		"mod_item":                {kind: "module", names: named},
		"const_item":              {kind: "constant", names: named},
		"static_item":             {kind: "variable", names: named},
		"type_item":               {kind: "class", names: named},
		"macro_definition":        {kind: "function", names: named},
		"field_declaration":       {kind: "field", names: named, sep: ",", in: "field_declaration_list"},
		"enum_variant":            {kind: "enumMember", names: named, sep: ",", in: "enum_variant_list"},
	}, wraps: map[string]bool{}, leads: map[string]byte{"line_comment": 'c', "block_comment": 'c', "attribute_item": 'd'}}
}

// cGrammar finds a name at the end of a chain of declarators: *f(int)[3] declares f. A struct without a body is a use of its type,
// such as in a parameter, and not a declaration.
func cGrammar() *grammar {
	declared := func(n *node, text string) []name {
		var out []name
		for _, k := range n.kids {
			if k.field != "declarator" {
				continue
			}
			for k != nil && !strings.HasSuffix(k.kind, "identifier") {
				k = k.child("declarator")
			}
			if k != nil {
				out = append(out, name{text[k.start:k.end], k.start})
			}
		}
		return out
	}
	whole := func(n *node, text string) []name { // a definition, not a mention
		if n.child("body") == nil {
			return nil
		}
		return field("name")(n, text)
	}
	return &grammar{name: "c", pieces: true, decls: map[string]decl{
		"function_definition": {kind: "function", names: declared, sealed: true},
		"declaration": {kind: "variable", names: declared, kindOf: func(n *node, kind string) string {
			if n.find("function_declarator") != nil {
				return "function"
			}
			return kind
		}},
		"type_definition":      {kind: "class", names: declared},
		"struct_specifier":     {kind: "struct", names: whole},
		"union_specifier":      {kind: "struct", names: whole},
		"enum_specifier":       {kind: "enum", names: whole},
		"enumerator":           {kind: "enumMember", names: field("name"), sep: ",", in: "enumerator_list"},
		"preproc_def":          {kind: "constant", names: field("name")},
		"preproc_function_def": {kind: "function", names: field("name")},
		"field_declaration":    {kind: "field", names: declared},
	}, wraps: map[string]bool{}, leads: map[string]byte{"comment": 'c'}}
}

// javaGrammar names a field by its declarator, but cuts out the statement around it. If one statement has two declarators, both are
// Fixed.
func javaGrammar() *grammar {
	named := field("name")
	return &grammar{name: "java", decls: map[string]decl{
		"class_declaration":           {kind: "class", names: named},
		"interface_declaration":       {kind: "interface", names: named},
		"annotation_type_declaration": {kind: "interface", names: named},
		"enum_declaration":            {kind: "enum", names: named},
		"record_declaration":          {kind: "class", names: named},
		"method_declaration":          {kind: "method", names: named, sealed: true},
		"constructor_declaration":     {kind: "constructor", names: named, sealed: true},
		"variable_declarator":         {kind: "field", names: named, sealed: true},
		"enum_constant":               {kind: "enumMember", names: named, sep: ",", in: "enum_body"},
	}, wraps: map[string]bool{"field_declaration": false, "local_variable_declaration": false},
		leads: map[string]byte{"line_comment": 'c', "block_comment": 'c'}}
}

// bashGrammar counts assignments as variables, and those in a function as local. tree-sitter does not know which ones are exported.
func bashGrammar() *grammar {
	return &grammar{name: "bash", decls: map[string]decl{
		"function_definition": {kind: "function", names: field("name"), sealed: true},
		"variable_assignment": {kind: "variable", names: field("name")},
	}, wraps: map[string]bool{"declaration_command": false}, leads: map[string]byte{"comment": 'c'}}
}
