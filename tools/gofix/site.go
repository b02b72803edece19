package gofix

import (
	"go/ast"
	"go/token"
	"go/types"
	"sort"
	"strings"
)

// site is the place of one error: what the syntax and the types around it say. It changes nothing and suggests nothing.
type site struct {
	m      *module
	t      trouble
	around []ast.Node // the nodes around the error, the innermost first
}

// ident is the innermost name at the error, or nil.
func (here *site) ident() *ast.Ident {
	for _, n := range here.around {
		if id, ok := n.(*ast.Ident); ok {
			return id
		}
	}
	return nil
}

// find is the innermost node of a type around the error, or nil.
func find[T ast.Node](nodes []ast.Node) (out T) {
	for _, n := range nodes {
		if x, ok := n.(T); ok {
			return x
		}
	}
	return out
}

// text is a node as it is written in the file. It is empty for a node that the parser created for broken code.
func (here *site) text(n ast.Node) string { return here.m.source(n) }

// qualifier returns the name of a package in this file. For a package that the file does not import, it is the package's own name;
// imports then adds the import in a later round.
func (here *site) qualifier(p *types.Package) string {
	if p == nil || p == here.t.pkg.types {
		return ""
	}
	for _, i := range here.t.file.syntax.Imports {
		if strings.Trim(i.Path.Value, `"`) == p.Path() {
			if i.Name != nil {
				if i.Name.Name == "." {
					return ""
				}
				return i.Name.Name
			}
			break
		}
	}
	return p.Name()
}

// typeText is a type as this file would write it. The text compiles only if every package in it is imported; the checker refuses
// the others.
func (here *site) typeText(t types.Type) string { return types.TypeString(t, here.qualifier) }

// typeOf is an expression's type, or nil if the checker did not find one.
func (here *site) typeOf(e ast.Expr) types.Type {
	if e == nil {
		return nil
	}
	t := here.t.pkg.info.TypeOf(e)
	if t == nil || t == types.Typ[types.Invalid] {
		return nil
	}
	return t
}

// zero is the zero value of a type as text. For a struct it needs the name of the type; for a number it does not, because an
// untyped constant converts by itself. Pointers, functions, maps, slices, channels and interfaces have nil, and so have
// unsafe.Pointer and untyped nil.
func (here *site) zero(t types.Type) string {
	switch u := t.Underlying().(type) {
	case *types.Basic:
		switch {
		case u.Info()&types.IsBoolean != 0:
			return "false"
		case u.Info()&types.IsString != 0:
			return `""`
		case u.Info()&types.IsNumeric != 0:
			return "0"
		}
		return "nil"
	case *types.Struct, *types.Array:
		return here.typeText(t) + "{}"
	}
	// a type parameter has no literal, so new is used
	if _, ok := t.(*types.TypeParam); ok {
		return "*new(" + here.typeText(t) + ")"
	}
	return "nil"
}

// scope is the innermost scope at the error. For a function go/types keeps the parameters in the scope of the function's type and
// not of its body, so the scope of the type is used.
func (here *site) scope() *types.Scope {
	if here.t.pkg.types == nil {
		return nil
	}
	for _, n := range here.around {
		node := n
		switch x := n.(type) {
		case *ast.FuncDecl:
			node = x.Type
		case *ast.FuncLit:
			node = x.Type
		}
		if s := here.t.pkg.info.Scopes[node]; s != nil {
			if in := s.Innermost(here.t.pos); in != nil {
				// a node's scope may contain smaller ones; the one around the error decides which names are visible
				return in
			}
			return s
		}
	}
	return here.t.pkg.types.Scope()
}

// object is the object that a name or a selector refers to.
func (here *site) object(e ast.Expr) types.Object {
	switch x := ast.Unparen(e).(type) {
	case *ast.Ident:
		if o := here.t.pkg.info.Uses[x]; o != nil {
			return o
		}
		return here.t.pkg.info.Defs[x]
	case *ast.SelectorExpr:
		return here.t.pkg.info.Uses[x.Sel]
	}
	return nil
}

// declaration is the function of the module that an expression names, or nil.
func (here *site) declaration(fun ast.Expr) *ast.FuncDecl {
	var id *ast.Ident
	switch x := ast.Unparen(fun).(type) {
	case *ast.Ident:
		id = x
	case *ast.SelectorExpr:
		id = x.Sel
	}
	if id == nil {
		return nil
	}
	o := here.t.pkg.info.Uses[id]
	if o == nil {
		return nil
	}
	f := here.m.files[here.m.pathOf(o.Pos())]
	if f == nil {
		return nil
	}
	for _, d := range f.syntax.Decls {
		if fn, ok := d.(*ast.FuncDecl); ok && fn.Name.Pos() == o.Pos() {
			return fn
		}
	}
	return nil
}

// typeExprOf is the type in the declaration of a variable, field, parameter or constant of the module. It is nil if the declaration
// has no type, or is outside the module.
func (here *site) typeExprOf(o types.Object) ast.Expr {
	f := here.m.files[here.m.pathOf(o.Pos())]
	if f == nil || f.syntax == nil {
		return nil
	}
	for _, n := range enclosing(f.syntax, o.Pos()) {
		switch x := n.(type) {
		case *ast.Field:
			return x.Type
		case *ast.ValueSpec:
			return x.Type
		}
	}
	return nil
}

// origin is the type in the declaration from which an object has its type, with the name that is declared: for x with x := s.f those of the
// field, for x with x, err := f() that of the first result of f. The type of x := 1 follows from no declaration.
func (here *site) origin(o types.Object) (name string, at ast.Expr) {
	for range 4 { // more than four of them in a row have not been seen
		if o == nil {
			break
		}
		if at := here.typeExprOf(o); at != nil {
			return o.Name(), at
		}
		value, result := here.valueOf(o)
		if call, ok := ast.Unparen(value).(*ast.CallExpr); ok {
			return here.resultOf(call, result)
		}
		from, ok := here.object(value).(*types.Var)
		if !ok {
			break
		}
		o = from
	}
	return "", nil
}

// resultOf is the type of a result, by its index, in the declaration of the function that is called; nil if that is not in the module.
func (here *site) resultOf(call *ast.CallExpr, result int) (name string, at ast.Expr) {
	fn := here.declaration(call.Fun)
	if fn == nil || fn.Type.Results == nil {
		return "", nil
	}
	for _, field := range fn.Type.Results.List {
		if result -= max(1, len(field.Names)); result < 0 {
			return "the result of " + fn.Name.Name, field.Type
		}
	}
	return "", nil
}

// valueOf is the expression that a variable of the package gets where it is declared without a type; nil where there is none. Of a call
// with several results it is the one with this index.
func (here *site) valueOf(o types.Object) (value ast.Expr, result int) {
	f := here.m.files[here.m.pathOf(o.Pos())]
	if f == nil || f.syntax == nil {
		return nil, 0
	}
	of := func(i int, values []ast.Expr, names int) (ast.Expr, int) {
		switch len(values) {
		case names:
			return values[i], 0
		case 1:
			return values[0], i
		}
		return nil, 0
	}
	for _, n := range enclosing(f.syntax, o.Pos()) {
		switch x := n.(type) {
		case *ast.AssignStmt:
			for i, l := range x.Lhs {
				if l.Pos() == o.Pos() && x.Tok == token.DEFINE {
					return of(i, x.Rhs, len(x.Lhs))
				}
			}
			return nil, 0
		case *ast.ValueSpec:
			for i, name := range x.Names {
				if name.Pos() == o.Pos() {
					return of(i, x.Values, len(x.Names))
				}
			}
			return nil, 0
		}
	}
	return nil, 0
}

// variable is a name in scope with exactly this type; one with a name similar to the parameter's is preferred. Package variables
// cost more: a local is more likely meant.
func (here *site) variable(t types.Type, like string) (best string) {
	// more than any distance between two names
	cost := 1 << 20
	for s := here.scope(); s != nil && s != types.Universe; s = s.Parent() {
		for _, name := range s.Names() {
			v, ok := s.Lookup(name).(*types.Var)
			// a local variable is visible only after its declaration
			if !ok || name == "_" || s != here.t.pkg.types.Scope() && v.Pos() > here.t.pos || !types.Identical(v.Type(), t) {
				continue
			}
			c := slips(name, like)
			if strings.EqualFold(name, like) {
				c = -1
			}
			if s == here.t.pkg.types.Scope() {
				c += 5
			}
			if c < cost {
				cost, best = c, name
			}
		}
	}
	return best
}

// visible are the local variables and parameters with a fitting type that can be used at the error, the last declared first: what was
// declared last is most often what the next statement is about.
func (here *site) visible(fits func(types.Type) bool) (names []string) {
	const most = 4 // of several that fit the checker accepts each, so a longer list only takes its time
	var vars []*types.Var
	seen := map[string]bool{"_": true}
	for s := here.scope(); s != nil && s != types.Universe && s != here.t.pkg.types.Scope(); s = s.Parent() {
		for _, name := range s.Names() {
			// A name that an inner scope declares hides those of the outer ones, whatever its type is.
			v, ok := s.Lookup(name).(*types.Var)
			if !ok || seen[name] || v.Pos() > here.t.pos {
				continue
			}
			seen[name] = true
			if fits(v.Type()) {
				vars = append(vars, v)
			}
		}
	}
	sort.Slice(vars, func(i, j int) bool { return vars[i].Pos() > vars[j].Pos() })
	for _, v := range vars[:min(len(vars), most)] {
		names = append(names, v.Name())
	}
	return names
}

// last is the variable of a type that was declared last at the top level of a body; one that nothing uses is preferred, since that is an
// error too, also if it is text as bytes or the reverse. Another error variable is never meant: nil in its place says that the function
// succeeded.
func (here *site) last(body *ast.BlockStmt, t types.Type) (value string) {
	unused := false
	declare := func(id *ast.Ident) {
		o := here.t.pkg.info.Defs[id]
		if o == nil || id.Name == "_" {
			return
		}
		used := false
		for _, u := range here.t.pkg.info.Uses {
			used = used || u == o
		}
		switch same := types.Identical(o.Type(), t); {
		case !used && !same && isText(o.Type()) && isText(t):
			value, unused = wrap(here.typeText(t))+"("+id.Name+")", true
		case same && (!used || !unused && !isError(t)):
			value, unused = id.Name, !used
		}
	}
	for _, s := range body.List {
		switch x := s.(type) {
		case *ast.AssignStmt:
			if x.Tok != token.DEFINE {
				continue
			}
			for _, l := range x.Lhs {
				if id, ok := l.(*ast.Ident); ok {
					declare(id)
				}
			}
		case *ast.DeclStmt:
			if gd, ok := x.Decl.(*ast.GenDecl); ok && gd.Tok == token.VAR {
				for _, spec := range gd.Specs {
					if v, ok := spec.(*ast.ValueSpec); ok {
						for _, id := range v.Names {
							declare(id)
						}
					}
				}
			}
		}
	}
	return value
}

// isText reports whether a type is a string or a list of bytes: each can be converted into the other.
func isText(t types.Type) bool {
	switch u := t.Underlying().(type) {
	case *types.Basic:
		return u.Info()&types.IsString != 0
	case *types.Slice:
		b, ok := u.Elem().Underlying().(*types.Basic)
		return ok && b.Kind() == types.Byte
	}
	return false
}

// imported reports whether the file imports a path.
func (here *site) imported(path string) bool {
	for _, i := range here.t.file.syntax.Imports {
		if strings.Trim(i.Path.Value, `"`) == path {
			return true
		}
	}
	return false
}

// importEdit adds an import where gofmt and goimports would put it, so that a formatter does not move it afterwards.
func (here *site) importEdit(path string) edit {
	f := here.t.file
	for _, d := range f.syntax.Decls {
		gd, ok := d.(*ast.GenDecl)
		if !ok || gd.Tok != token.IMPORT {
			continue
		}
		if gd.Lparen.IsValid() {
			// In sorted order among the lines before the first blank one, which are those of the standard library.
			at := gd.Lparen + 1
			std := !strings.Contains(strings.Split(path, "/")[0], ".")
			for _, s := range gd.Specs {
				spec := s.(*ast.ImportSpec)
				other := strings.Trim(spec.Path.Value, `"`)
				otherStd := !strings.Contains(strings.Split(other, "/")[0], ".")
				if otherStd == std && other < path || !std && otherStd {
					at = spec.End()
				}
			}
			_, end := lineOf(f.text, here.m.offset(at))
			return edit{f.path, end, end, "\t\"" + path + "\"\n"}
		}
		start, _ := lineOf(f.text, here.m.offset(gd.Pos()))
		return edit{f.path, start, start, "import \"" + path + "\"\n"}
	}
	// The first import: it follows the package clause after an empty line, as gofmt writes it.
	_, end := lineOf(f.text, here.m.offset(f.syntax.Name.End()))
	return edit{f.path, end, end, "\nimport \"" + path + "\"\n"}
}

// wish is an expression and the type that its place needs; nil: unknown. cost is the distance from the error: an expression further
// out is less likely to be the mistake.
type wish struct {
	expr ast.Expr
	want types.Type
	cost int
}

// wanted are the expressions at the error with the types that their places need, the innermost first. Five expressions outward are
// enough; beyond them the error belongs to something else.
func (here *site) wanted() (out []wish) {
	depth := 0
	for i, n := range here.around {
		if depth > 5 {
			break
		}
		e, ok := n.(ast.Expr)
		if !ok {
			// x += y: the error is reported at x, but y can be converted.
			if a, ok := n.(*ast.AssignStmt); ok && a.Tok != token.ASSIGN && a.Tok != token.DEFINE && len(a.Lhs) == 1 && len(a.Rhs) == 1 {
				if x, y := here.typeOf(a.Lhs[0]), here.typeOf(a.Rhs[0]); x != nil && y != nil && !types.Identical(x, y) {
					out = append(out, wish{a.Rhs[0], x, depth}, wish{a.Lhs[0], types.Default(y), depth + 1})
				}
			}
			if _, stmt := n.(ast.Stmt); stmt {
				break
			}
			continue
		}
		depth++
		if i+1 >= len(here.around) {
			break
		}
		if want := here.wantAt(here.around[i+1:], e); want != nil {
			out = append(out, wish{e, want, depth - 1})
		}
		if b, ok := n.(*ast.BinaryExpr); ok {
			// Each operand of a binary expression needs the type of the other; the right one is changed first.
			x, y := here.typeOf(b.X), here.typeOf(b.Y)
			if x != nil && y != nil && !types.Identical(x, y) {
				out = append(out, wish{b.Y, types.Default(x), depth}, wish{b.X, types.Default(y), depth + 1})
			}
		}
	}
	return out
}

// wantAt is the type that the place of e needs. parents are the nodes around e, its own parent first. nil means that any type fits,
// or that the type is unknown.
func (here *site) wantAt(parents []ast.Node, e ast.Expr) types.Type {
	info := here.t.pkg.info
	switch p := parents[0].(type) {
	case *ast.CallExpr:
		sig, ok := under[*types.Signature](here.typeOf(p.Fun))
		if !ok {
			return nil
		}
		for i, a := range p.Args {
			if a != e {
				continue
			}
			n := sig.Params().Len()
			switch {
			// f(a, b...) fills the last parameter with the slice itself, f(a, b, c) with its elements
			case sig.Variadic() && i >= n-1:
				if s, ok := sig.Params().At(n - 1).Type().(*types.Slice); ok && !p.Ellipsis.IsValid() {
					return s.Elem()
				}
				return sig.Params().At(n - 1).Type()
			case i < n:
				return sig.Params().At(i).Type()
			}
		}
	case *ast.AssignStmt:
		for i, x := range p.Rhs {
			if x == e && len(p.Lhs) == len(p.Rhs) && p.Tok != token.DEFINE {
				return here.typeOf(p.Lhs[i])
			}
		}
	case *ast.ValueSpec:
		if p.Type != nil {
			return here.typeOf(p.Type)
		}
	case *ast.CaseClause:
		// the value that is switched on; without one each case is a condition
		if s, ok := find[ast.Stmt](parents[2:]).(*ast.SwitchStmt); ok && s.Tag != nil {
			return here.typeOf(s.Tag)
		}
		return types.Typ[types.Bool]
	case *ast.ReturnStmt:
		// the innermost function that encloses the return, a literal or a declaration
		for _, n := range parents {
			var sig *types.Signature
			switch x := n.(type) {
			case *ast.FuncLit:
				sig, _ = here.typeOf(x).(*types.Signature)
			case *ast.FuncDecl:
				if o := info.Defs[x.Name]; o != nil {
					sig, _ = o.Type().(*types.Signature)
				}
			}
			if sig == nil {
				continue
			}
			for i, x := range p.Results {
				if x == e && i < sig.Results().Len() {
					return sig.Results().At(i).Type()
				}
			}
			return nil
		}
	case *ast.KeyValueExpr:
		if p.Value != e || len(parents) < 2 {
			return nil
		}
		lit, ok := parents[1].(*ast.CompositeLit)
		if !ok {
			return nil
		}
		switch u := underlying(here.typeOf(lit)).(type) {
		case *types.Struct:
			if key, ok := p.Key.(*ast.Ident); ok {
				for i := range u.NumFields() {
					if u.Field(i).Name() == key.Name {
						return u.Field(i).Type()
					}
				}
			}
		case *types.Map:
			return u.Elem()
		case *types.Slice:
			return u.Elem()
		case *types.Array:
			return u.Elem()
		}
	case *ast.CompositeLit:
		switch u := underlying(here.typeOf(p)).(type) {
		case *types.Slice:
			return u.Elem()
		case *types.Array:
			return u.Elem()
		case *types.Struct:
			for i, x := range p.Elts {
				if x == e && i < u.NumFields() {
					return u.Field(i).Type()
				}
			}
		}
	case *ast.IndexExpr:
		if p.Index == e {
			if u, ok := underlying(here.typeOf(p.X)).(*types.Map); ok {
				return u.Key()
			}
			// slices, arrays and strings
			return types.Typ[types.Int]
		}
	case *ast.IfStmt, *ast.ForStmt:
		return types.Typ[types.Bool]
	case *ast.SendStmt:
		if p.Value == e {
			if u, ok := underlying(here.typeOf(p.Chan)).(*types.Chan); ok {
				return u.Elem()
			}
		}
	// the place of the parentheses decides
	case *ast.ParenExpr:
		if len(parents) > 1 {
			return here.wantAt(parents[1:], p)
		}
	case *ast.BinaryExpr:
		other := p.X
		if other == e {
			other = p.Y
		}
		if p.Op == token.LAND || p.Op == token.LOR {
			return types.Typ[types.Bool]
		}
		if t := here.typeOf(other); t != nil {
			return types.Default(t)
		}
	case *ast.UnaryExpr:
		if p.Op == token.NOT {
			return types.Typ[types.Bool]
		}
	}
	return nil
}
