package gofix

import (
	"go/ast"
	"go/token"
)

// trial is with for a candidate that is probably wrong, in a fraction of the time: of the files that are not edited it checks only what the
// edit can affect. An edit inside a function cannot affect the bodies of others, and an edit of a declaration rarely affects a table of
// values, which may be most of a package. Where the module has errors all is checked, so that an error that disappears is counted. What
// trial leaves out may have a new error with an edit that is not inside a function; so fixes checks those again that it returns.
func (m *module) trial(texts map[string]string, deep bool) *module {
	wrong := map[string]bool{}
	for _, p := range m.pkgs {
		if p == nil {
			continue
		}
		for _, e := range p.errs {
			wrong[m.pathOf(e.Pos)] = true
		}
	}
	return m.withFiles(texts, deep, func(f *file) *file {
		if wrong[f.path] || len(f.broken) > 0 || f.syntax == nil {
			return f
		}
		return f.withoutParts(!deep)
	})
}

// withoutParts is the file without the values of its composite literals at package level, and without the bodies of its functions if bodies
// is true.
func (f *file) withoutParts(bodies bool) *file {
	syntax := *f.syntax
	syntax.Decls = nil
	for _, d := range f.syntax.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			if bodies && d.Body != nil {
				short := *d
				// Without a body main, init and generic functions are errors, and a body without a return is one where there are results.
				endless := &ast.ForStmt{For: d.Body.Lbrace, Body: &ast.BlockStmt{Lbrace: d.Body.Lbrace, Rbrace: d.Body.Rbrace}}
				short.Body = &ast.BlockStmt{Lbrace: d.Body.Lbrace, List: []ast.Stmt{endless}, Rbrace: d.Body.Rbrace}
				syntax.Decls = append(syntax.Decls, &short)
				continue
			}
		case *ast.GenDecl:
			if d.Tok == token.VAR {
				short := *d
				short.Specs = nil
				for _, s := range d.Specs {
					short.Specs = append(short.Specs, withoutLiteral(s))
				}
				syntax.Decls = append(syntax.Decls, &short)
				continue
			}
		}
		syntax.Decls = append(syntax.Decls, d)
	}
	return &file{path: f.path, text: f.text, syntax: &syntax, parts: true}
}

// withoutLiteral is a variable of the type of the composite literal that is its value, or of a pointer to it; other variables as they are.
func withoutLiteral(s ast.Spec) ast.Spec {
	v, ok := s.(*ast.ValueSpec)
	if !ok || len(v.Names) != 1 || len(v.Values) != 1 {
		return s
	}
	short := *v
	switch x := v.Values[0].(type) {
	case *ast.CompositeLit:
		short.Type = x.Type
	case *ast.UnaryExpr:
		lit, ok := x.X.(*ast.CompositeLit)
		if !ok || x.Op != token.AND {
			return s
		}
		short.Type = &ast.StarExpr{Star: x.OpPos, X: lit.Type}
	default:
		return s
	}
	if v.Type != nil {
		short.Type = v.Type
	} else if a, ok := short.Type.(*ast.ArrayType); ok {
		if _, counted := a.Len.(*ast.Ellipsis); counted {
			return s // its values say how long it is
		}
	}
	short.Values = nil
	return &short
}

// imports reports whether a position is in an import declaration.
func (f *file) imports(p token.Pos) bool {
	for _, d := range f.syntax.Decls {
		if g, ok := d.(*ast.GenDecl); ok && g.Tok == token.IMPORT && g.Pos() <= p && p < g.End() {
			return true
		}
	}
	return false
}
