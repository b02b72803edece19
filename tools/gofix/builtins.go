package gofix

import (
	"go/ast"
	"go/types"
)

// withoutSignature repairs a call of a built-in function, or a conversion. They look like calls, but go/types gives them no signature, so
// the repairs of calls, which compare arguments with parameters, cannot see them.
func (r *repairer) withoutSignature(c *ast.CallExpr) {
	id, _ := ast.Unparen(c.Fun).(*ast.Ident)
	builtin, _ := r.t.pkg.info.Uses[id].(*types.Builtin) // a nil id is in no map
	to := r.typeOf(c.Fun)
	if tv := r.t.pkg.info.Types[c.Fun]; builtin == nil && (to == nil || !tv.IsType()) {
		return
	}
	surplus := 3
	if builtin != nil && (builtin.Name() == "append" || builtin.Name() == "min" || builtin.Name() == "max") {
		surplus = 9 // these take any number of arguments, so one of another type is rarely one too many
	}
	// The last argument is dropped first, as in other calls: people add to the end.
	for i := range c.Args {
		if len(c.Args) > 1 {
			r.add(surplus+len(c.Args)-1-i, "Remove the argument "+r.text(c.Args[i]), dropItem(r.m, r.t.file, exprs(c.Args), i))
		}
	}
	for i := 0; i+1 < len(c.Args); i++ {
		a, b := c.Args[i], c.Args[i+1]
		r.add(6, "Swap the arguments "+r.text(a)+" and "+r.text(b), r.m.replace(a, r.text(b)), r.m.replace(b, r.text(a)))
	}
	if builtin == nil {
		r.conversion(c, to)
		return
	}
	switch name := builtin.Name(); {
	case name == "make" && len(c.Args) == 1:
		// A slice without elements is a guess, but an index that does not fit is found by the first test.
		r.add(6, "Add the length 0", r.m.insert(c.Args[0].End(), ", 0"))
	case name == "append" && len(c.Args) > 1:
		r.appended(c)
	case len(c.Args) == 0:
		// Which types these functions take is left to the checker; a variable of another type only costs a check.
		for i, v := range r.visible(func(t types.Type) bool {
			switch underlying(t).(type) {
			case *types.Slice, *types.Map, *types.Chan, *types.Array:
				return true
			case *types.Basic:
				return name == "len" && types.Identical(types.Default(t), types.Typ[types.String])
			}
			return false
		}) {
			r.add(5+i, "Add the argument "+v, r.m.insert(c.Lparen+1, v))
		}
	case len(c.Args) == 1 && (name == "copy" || name == "delete"):
		want := r.typeOf(c.Args[0])
		if m, ok := under[*types.Map](want); ok {
			want = m.Key()
		}
		for i, v := range r.visible(func(t types.Type) bool { return want != nil && types.AssignableTo(t, want) }) {
			r.add(5+i, "Add the argument "+v, r.m.insert(c.Args[0].End(), ", "+v))
		}
	}
}

// conversion repairs T(x): without a value, or to a type whose declaration is the mistake.
func (r *repairer) conversion(c *ast.CallExpr, to types.Type) {
	if len(c.Args) == 0 {
		for i, v := range r.visible(func(t types.Type) bool { return types.ConvertibleTo(t, to) }) {
			r.add(5+i, "Convert "+v, r.m.insert(c.Lparen+1, v))
		}
		value := r.zero(to)
		if types.ConvertibleTo(types.Typ[types.String], to) {
			value = `""`
		}
		r.add(6, "Convert "+value, r.m.insert(c.Lparen+1, value))
		return
	}
	have := r.typeOf(c.Args[0])
	if have == nil || len(c.Args) > 1 {
		return
	}
	if n, ok := types.Unalias(to).(*types.Named); ok {
		// Only a type without a name: type T []E would become a second name of another type of the project.
		if _, named := types.Unalias(have).(*types.Named); named {
			return
		}
		if f := r.m.files[r.m.pathOf(n.Obj().Pos())]; f != nil {
			if spec := find[*ast.TypeSpec](enclosing(f.syntax, n.Obj().Pos())); spec != nil {
				r.addDeep(7, "Declare "+n.Obj().Name()+" as "+r.typeText(have), r.m.replace(spec.Type, r.typeText(have)))
			}
		}
	}
}

// appended declares what is appended to as a list of what is appended, if it is no list.
func (r *repairer) appended(c *ast.CallExpr) {
	list, item := r.typeOf(c.Args[0]), r.typeOf(c.Args[1])
	o := r.object(c.Args[0])
	if list == nil || item == nil || o == nil {
		return
	}
	if _, ok := list.Underlying().(*types.Slice); ok {
		return
	}
	if at := r.typeExprOf(o); at != nil {
		text := r.typeText(types.Default(item))
		if !c.Ellipsis.IsValid() { // append(a, b...) appends the items of b
			text = "[]" + text
		}
		r.addDeep(6, "Declare "+o.Name()+" as "+text, r.m.replace(at, text))
	}
}
