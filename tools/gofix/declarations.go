package gofix

import (
	"fmt"
	"go/ast"
	"go/token"
	"go/types"
	"sort"
	"strings"
)

// declaredFor declares a variable, parameter or field with another type, one that has the member that its uses need. The types are those of
// the other variables of the package, because the right one is nearly always used more than once: t is *testing.T in every test.
func (r *repairer) declaredFor(x *ast.SelectorExpr) {
	o := r.object(x.X)
	if o == nil {
		return
	}
	at := r.typeExprOf(o)
	if at == nil {
		return
	}
	// The go command itself says what a test takes, also in the only test of a package.
	if f := r.m.files[r.m.pathOf(at.Pos())]; f != nil && strings.HasSuffix(f.path, "_test.go") {
		if fn := find[*ast.FuncDecl](enclosing(f.syntax, at.Pos())); fn != nil && fn.Recv == nil {
			for prefix, name := range map[string]string{"Test": "T", "Benchmark": "B", "Fuzz": "F"} {
				if strings.HasPrefix(fn.Name.Name, prefix) && fn.Type.Params.NumFields() == 1 {
					r.addDeep(3, "Declare "+o.Name()+" as *testing."+name, r.m.replace(at, "*testing."+name))
				}
			}
		}
	}
	const most = 4 // each guess checks the importers of the package as well
	cost := map[string]int{}
	for _, other := range r.t.pkg.info.Defs {
		v, ok := other.(*types.Var)
		if !ok || types.Identical(v.Type(), o.Type()) || isInvalid(v.Type()) {
			continue
		}
		if member, _, _ := types.LookupFieldOrMethod(v.Type(), true, r.t.pkg.types, x.Sel.Name); member == nil {
			continue
		}
		text, c := r.typeText(v.Type()), 8
		if v.Name() == o.Name() {
			c = 5
		}
		if had, ok := cost[text]; !ok || c < had {
			cost[text] = c
		}
	}
	texts := sortedKeys(cost)
	sort.SliceStable(texts, func(i, j int) bool { return cost[texts[i]] < cost[texts[j]] })
	for _, text := range texts[:min(len(texts), most)] {
		r.addDeep(cost[text], fmt.Sprintf("Declare %s as %s", o.Name(), text), r.m.replace(at, text))
	}
}

// items changes the declared item type of a list or map, where an item that is used does not fit: one edit where the uses need many.
func (r *repairer) items(e ast.Expr, want types.Type) {
	x, ok := ast.Unparen(e).(*ast.IndexExpr)
	if !ok {
		return
	}
	o := r.object(x.X)
	if o == nil {
		return
	}
	at := r.typeExprOf(o)
	// The variable has a named type: its declaration has the items.
	if n, ok := types.Unalias(o.Type()).(*types.Named); ok {
		at = nil
		if f := r.m.files[r.m.pathOf(n.Obj().Pos())]; f != nil {
			if spec := find[*ast.TypeSpec](enclosing(f.syntax, n.Obj().Pos())); spec != nil {
				at = spec.Type
			}
		}
	}
	switch t := at.(type) {
	case *ast.ArrayType:
		at = t.Elt
	case *ast.MapType:
		at = t.Value
	default:
		return
	}
	text := r.typeText(types.Default(want))
	r.addDeep(7, "Declare the items of "+o.Name()+" as "+text, r.m.replace(at, text))
}

// calledBefore calls a function where its result should have been kept: v := f is a legal statement, and only the uses of v fail.
func (r *repairer) calledBefore(e ast.Expr) {
	id, ok := ast.Unparen(e).(*ast.Ident)
	if !ok {
		return
	}
	o := r.object(id)
	if o == nil {
		return
	}
	s, ok := under[*types.Signature](o.Type())
	f := r.m.files[r.m.pathOf(o.Pos())]
	if !ok || f == nil || s.Params().Len() > 0 || s.Results().Len() != 1 {
		return
	}
	a := find[*ast.AssignStmt](enclosing(f.syntax, o.Pos()))
	if a == nil || a.Tok != token.DEFINE || len(a.Lhs) != len(a.Rhs) {
		return
	}
	for i, l := range a.Lhs {
		if l.Pos() == o.Pos() {
			r.add(2, "Call "+r.text(a.Rhs[i]), r.m.insert(a.Rhs[i].End(), "()"))
		}
	}
}

// lostDot splits an unknown name into a package or variable in scope and its member, as strconvItoa into strconv.Itoa.
func (r *repairer) lostDot(id *ast.Ident) {
	for s := r.scope(); s != nil && s != types.Universe; s = s.Parent() {
		for _, name := range s.Names() {
			member, ok := strings.CutPrefix(id.Name, name)
			if !ok || member == "" {
				continue
			}
			found := false
			switch o := s.Lookup(name).(type) {
			case *types.PkgName:
				found = ast.IsExported(member) && o.Imported().Scope().Lookup(member) != nil
			case *types.Var:
				m, _, _ := types.LookupFieldOrMethod(o.Type(), true, r.t.pkg.types, member)
				found = m != nil
			}
			if found {
				r.add(1, "Change "+id.Name+" to "+name+"."+member, r.m.replace(id, name+"."+member))
			}
		}
	}
}
