package gofix

import (
	"fmt"
	"go/ast"
	"go/token"
	"go/types"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/pillion-dev/pillion/tools/fuzzy"
)

// repairs returns the candidates for one type error. They are found by the syntax around the error, not by its text: the text
// changes from one version of Go to the next and often names a symptom and not the cause. Most candidates are wrong; the checker
// decides which of them lowers the number of errors.
func (m *module) repairs(t trouble) []candidate {
	r := &repairer{site: &site{m: m, t: t, around: enclosing(t.file.syntax, t.pos)}}
	r.imports()
	r.unused()
	r.names()
	r.assignments()
	r.calls()
	r.uncalled()
	r.returns()
	r.mismatches()
	r.literals()
	r.duplicates()
	r.methods()
	return r.out
}

// repairer collects the candidates for one error. All its methods run for every error: each examines the syntax around it and adds
// what could help. The cost of a candidate is a guess of how likely a person wanted the edit; a lower cost is more likely. It
// orders candidates that lower the number of errors equally, and decides which are tried before maxCandidates is reached.
//
// It is one type because the repairs of one kind of error lead to those of another: a call with a missing argument is a mismatch, a
// wrong name or a parameter too many.
type repairer struct {
	*site
	out []candidate
}

// add adds a candidate that changes only the inside of one file.
func (r *repairer) add(cost int, title string, edits ...edit) {
	r.out = append(r.out, candidate{title: title, cost: cost, edits: edits})
}

// addDeep adds a candidate that changes a declaration: packages that import its folder must be checked again.
func (r *repairer) addDeep(cost int, title string, edits ...edit) {
	r.out = append(r.out, candidate{title: title, cost: cost, edits: edits, deep: true})
}

// near reports whether one name may be a misspelling of the other: at most a third of the letters of the shorter one differ. With a
// looser limit every short name in scope would be a candidate, and each candidate costs a check of the package.
func near(a, b string) bool {
	if a == b || a == "" || b == "" {
		return false
	}
	return strings.EqualFold(a, b) || slips(a, b) <= max(1, min(len(a), len(b))/3)
}

// slips counts the letters that differ. Upper and lower case count as equal, so that the exported form of a name (Total for total)
// is the nearest candidate.
func slips(a, b string) int { return fuzzy.Slips(strings.ToLower(a), strings.ToLower(b)) }

// similar is near, or one name begins or ends with the other, because people leave out or add a word (Total, TotalPrice). Names of
// less than three letters do not count for that: too many names begin with them.
func similar(a, b string) bool {
	if near(a, b) {
		return true
	}
	la, lb := strings.ToLower(a), strings.ToLower(b)
	short := min(len(a), len(b))
	return a != b && short >= 3 && (strings.HasPrefix(la, lb) || strings.HasPrefix(lb, la) || strings.HasSuffix(la, lb) || strings.HasSuffix(lb, la))
}

// names repairs a name that is not declared. Either the nearest member or name in scope is meant, or a declaration with a similar
// name is misspelled. Both are tried, because the error is the same.
func (r *repairer) names() {
	for _, n := range r.around {
		switch x := n.(type) {
		case *ast.SelectorExpr:
			if x.Sel.Pos() <= r.t.pos && r.t.pos <= x.Sel.End() || x.Pos() == r.t.pos {
				r.selector(x)
			}
		case *ast.Ident:
			if r.t.pkg.info.Uses[x] == nil && r.t.pkg.info.Defs[x] == nil {
				r.unknown(x)
			}
		case *ast.AssignStmt:
			// A method is on the left, which cannot be assigned to: the field with nearly its name is meant.
			for _, l := range x.Lhs {
				if sel, ok := ast.Unparen(l).(*ast.SelectorExpr); ok {
					if s := r.t.pkg.info.Selections[sel]; s != nil && s.Kind() == types.MethodVal {
						r.members(sel.Sel, r.typeOf(sel.X), 0)
					}
				}
			}
		case *ast.KeyValueExpr:
			if id, ok := x.Key.(*ast.Ident); ok && id.Pos() <= r.t.pos && r.t.pos <= id.End() {
				if lit := find[*ast.CompositeLit](r.around); lit != nil {
					r.members(id, r.typeOf(lit), 0)
				}
			}
		}
	}
}

// selector repairs x.Sel that does not exist: by a member with a similar name, by dereferencing a pointer, or by calling a function
// first (len(s.Items) where Items is a method).
func (r *repairer) selector(x *ast.SelectorExpr) {
	// the checker resolved this selection, so it is not the error
	if _, ok := r.t.pkg.info.Selections[x]; ok {
		return
	}
	if id, ok := x.X.(*ast.Ident); ok {
		if pn, ok := r.t.pkg.info.Uses[id].(*types.PkgName); ok {
			// the name exists, so its use is the error
			if pn.Imported().Scope().Lookup(x.Sel.Name) != nil && ast.IsExported(x.Sel.Name) {
				return
			}
			scope := pn.Imported().Scope()
			for _, name := range scope.Names() {
				if ast.IsExported(name) && similar(name, x.Sel.Name) {
					r.add(slips(name, x.Sel.Name), "Change "+x.Sel.Name+" to "+name, r.m.replace(x.Sel, name))
				}
			}
			r.renameDeclaration(x.Sel.Name, scope, pn.Imported().Path())
			return
		}
	}
	t := r.typeOf(x.X)
	if t == nil {
		return
	}
	r.members(x.Sel, t, 0)
	r.declaredFor(x)
	// x is a pointer to an interface, or a pointer to a pointer. Methods are not promoted through these (Go specification, "Method
	// sets").
	if p, ok := t.Underlying().(*types.Pointer); ok {
		switch p.Elem().Underlying().(type) {
		case *types.Interface, *types.Pointer:
			r.add(4, "Dereference "+r.text(x.X), r.m.replace(x.X, "(*"+r.text(x.X)+")"))
		}
	}
	if s, ok := t.Underlying().(*types.Signature); ok && s.Params().Len() == 0 && s.Results().Len() > 0 {
		r.add(5, "Call "+r.text(x.X), r.m.insert(x.X.End(), "()"))
	}
}

// members offers the members of a type for a name. For an unexported member in another package only a rename of the member is
// offered, because its name could not be used.
func (r *repairer) members(id *ast.Ident, t types.Type, cost int) {
	if t == nil {
		return
	}
	seen := map[string]bool{}
	for _, o := range allMembers(t) {
		if seen[o.Name()] || o.Name() == id.Name {
			continue
		}
		seen[o.Name()] = true
		// Packages are also compared by path: a package that was checked again has another types.Package.
		if !o.Exported() && o.Pkg() != r.t.pkg.types && (o.Pkg() == nil || o.Pkg().Path() != strings.TrimSuffix(r.t.pkg.path, "_test")) {
			if similar(o.Name(), id.Name) {
				r.renameObject(o, id.Name, slips(o.Name(), id.Name)+2+cost)
			}
			continue
		}
		if similar(o.Name(), id.Name) {
			r.add(slips(o.Name(), id.Name)+cost, "Change "+id.Name+" to "+o.Name(), r.m.replace(id, o.Name()))
			r.renameObject(o, id.Name, slips(o.Name(), id.Name)+2+cost)
		}
	}
}

// allMembers are the fields and methods of a type, including promoted ones.
func allMembers(t types.Type) (out []types.Object) {
	seen := map[types.Type]bool{}
	var walk func(t types.Type, depth int)
	// Depth 4 limits structs that embed each other in long chains.
	walk = func(t types.Type, depth int) {
		if p, ok := t.Underlying().(*types.Pointer); ok {
			t = p.Elem()
		}
		// Types may embed a pointer to themselves.
		if seen[t] || depth > 4 {
			return
		}
		seen[t] = true
		if n, ok := types.Unalias(t).(*types.Named); ok {
			for i := range n.NumMethods() {
				out = append(out, n.Method(i))
			}
		}
		switch u := t.Underlying().(type) {
		case *types.Struct:
			for i := range u.NumFields() {
				f := u.Field(i)
				out = append(out, f)
				if f.Embedded() {
					walk(f.Type(), depth+1)
				}
			}
		case *types.Interface:
			for i := range u.NumMethods() {
				out = append(out, u.Method(i))
			}
		}
	}
	walk(t, 0)
	return out
}

// renameObject renames a declaration of the module and does not change its uses: if all uses fail because the declaration is
// misspelled, this one edit fixes all of them.
func (r *repairer) renameObject(o types.Object, name string, cost int) {
	path := r.m.pathOf(o.Pos())
	f := r.m.files[path]
	if f == nil {
		return
	}
	at := r.m.offset(o.Pos())
	// Only a name that is really at that position can be replaced. The position of some objects is that of their type.
	if at+len(o.Name()) > len(f.text) || f.text[at:at+len(o.Name())] != o.Name() {
		return
	}
	switch first := documented(f.text, at); {
	case first == o.Name() || strings.EqualFold(o.Name(), name) && o.Exported():
		cost += 3 // its comment, or callers outside the module, use this name
	case first == name:
		cost -= 6
	default:
		switch spelled := r.m.spelled(o.Name(), name); {
		case spelled > 0:
			cost += 3
		case spelled < 0:
			cost -= 6
		case r.m.unused(o):
			cost -= 3 // all uses fail, so the declaration is misspelled
		}
	}
	// deep: packages that use the name must be checked again
	r.addDeep(cost, "Rename the declaration of "+o.Name()+" to "+name, edit{path, at, at + len(o.Name()), name})
}

// documented is the first word of the comment above the declaration whose name is at an offset, or "". By Go's convention it is the
// declaration's name.
func documented(text string, at int) string {
	start, _ := lineOf(text, at)
	word := ""
	for start > 0 {
		above, _ := lineOf(text, start-1)
		comment, ok := strings.CutPrefix(strings.TrimSpace(text[above:start]), "//")
		if !ok {
			break
		}
		word, _, _ = strings.Cut(strings.TrimSpace(comment), " ")
		start = above
	}
	return word
}

// unused reports whether nothing in the module uses a declaration. Positions are compared, because a package that was checked twice
// has two objects for one declaration. The result only decides costs; if it is wrong, the order of the fixes changes.
func (m *module) unused(o types.Object) bool {
	for _, p := range m.pkgs {
		if p == nil {
			continue
		}
		for _, used := range p.info.Uses {
			if used == o || used.Pos() == o.Pos() && used.Name() == o.Name() {
				return false
			}
		}
		for _, s := range p.info.Selections {
			if s.Obj().Pos() == o.Pos() {
				return false
			}
		}
	}
	return true
}

// renameDeclaration searches a package of the module for a declaration that should have this name.
func (r *repairer) renameDeclaration(name string, scope *types.Scope, path string) {
	if r.m.dirOf(strings.TrimSuffix(path, "_test")) == "" {
		return
	}
	for _, other := range scope.Names() {
		if similar(other, name) {
			r.renameObject(scope.Lookup(other), name, slips(other, name)+2)
		}
	}
}

// unknown repairs a name without a declaration: by a similar name in scope, a package that declares it, ":=" if it is assigned to,
// or a receiver that was left out. All of them are tried, because the checker's error is the same for each cause.
func (r *repairer) unknown(id *ast.Ident) {
	if id.Name == "_" {
		return
	}
	seen := map[string]bool{}
	for s := r.scope(); s != nil; s = s.Parent() {
		for _, name := range s.Names() {
			o := s.Lookup(name)
			// A local that is declared after the use is not visible there, although its scope contains the place.
			if seen[name] || !similar(name, id.Name) || s != types.Universe && o.Parent() != r.t.pkg.types.Scope() && o.Pos() > id.Pos() && !isPackageName(o) {
				continue
			}
			seen[name] = true
			r.add(slips(name, id.Name), "Change "+id.Name+" to "+name, r.m.replace(id, name))
			if s != types.Universe && !isPackageName(o) {
				r.renameObject(o, id.Name, slips(name, id.Name)+2)
			}
		}
	}
	r.lostDot(id)
	// Another package declares it: a qualifier or a dot import is missing. Only packages that the file already imports are tried;
	// imports offers others for names with a qualifier.
	for _, i := range r.t.file.syntax.Imports {
		path := strings.Trim(i.Path.Value, `"`)
		if p, err := r.m.Import(path); err == nil && p.Scope().Lookup(id.Name) != nil && ast.IsExported(id.Name) {
			q := r.qualifier(p)
			r.add(3, "Qualify "+id.Name, r.m.replace(id, q+"."+id.Name))
		}
	}
	// A name that is assigned to can be declared there.
	for _, n := range r.around {
		if a, ok := n.(*ast.AssignStmt); ok && a.Tok == token.ASSIGN {
			for _, l := range a.Lhs {
				if l == id {
					r.add(1, "Declare "+id.Name, edit{r.t.file.path, r.m.offset(a.TokPos), r.m.offset(a.TokPos) + 1, ":="})
				}
			}
			break
		}
		if rs, ok := n.(*ast.RangeStmt); ok && rs.Tok == token.ASSIGN && (rs.Key == id || rs.Value == id) {
			r.add(1, "Declare "+id.Name, edit{r.t.file.path, r.m.offset(rs.TokPos), r.m.offset(rs.TokPos) + 1, ":="})
		}
	}
	// It is a member whose receiver is missing. A receiver without a name cannot be inserted.
	if fn := find[*ast.FuncDecl](r.around); fn != nil && fn.Recv != nil && len(fn.Recv.List) == 1 && len(fn.Recv.List[0].Names) == 1 {
		recv := fn.Recv.List[0].Names[0]
		if o := r.t.pkg.info.Defs[recv]; o != nil {
			for _, mem := range allMembers(o.Type()) {
				if mem.Name() == id.Name {
					r.add(2, "Change "+id.Name+" to "+recv.Name+"."+id.Name, r.m.replace(id, recv.Name+"."+id.Name))
				}
			}
		}
	}
}

// isPackageName reports whether the object is an import, which cannot be renamed where it is declared.
func isPackageName(o types.Object) bool { _, ok := o.(*types.PkgName); return ok }

// imports adds the package that a qualifier names, and removes imports that are not used or do not exist.
func (r *repairer) imports() {
	f := r.t.file
	if spec := find[*ast.ImportSpec](r.around); spec != nil {
		start, end := lineOf(f.text, r.m.offset(spec.Pos()))
		if gd := find[*ast.GenDecl](r.around); gd != nil && !gd.Lparen.IsValid() {
			r.add(1, "Remove the import of "+spec.Path.Value, edit{f.path, start, end, ""})
		} else {
			r.add(1, "Remove the import of "+spec.Path.Value, edit{f.path, start, end, ""})
		}
		path := strings.Trim(spec.Path.Value, `"`)
		// The path itself may be misspelt: paths with the same or a similar last element are tried.
		for _, p := range r.m.packages(filepath.Base(path), path) {
			r.add(slips(p, path), "Import "+p, r.m.replace(spec.Path, `"`+p+`"`))
		}
		return
	}
	id := r.ident()
	// the qualifier is known, so no import is missing
	if id == nil || r.t.pkg.info.Uses[id] != nil {
		return
	}
	sel := find[*ast.SelectorExpr](r.around)
	if sel == nil || sel.X != id {
		return
	}
	// The standard library comes first in the list, so its package is preferred over one of a module with the same name.
	for i, path := range r.m.packages(id.Name, "") {
		p, err := r.m.Import(path)
		if err != nil || p.Name() != id.Name || p.Scope().Lookup(sel.Sel.Name) == nil {
			continue
		}
		r.add(1+min(i, 5), "Import "+path, r.importEdit(path))
	}
}

// packages are the import paths whose last element is name or similar to like: in the standard library, in the module, and in the
// modules that it requires (one level deep; deeper packages are rarely imported by name alone). A version suffix (/v2) and a "go-"
// prefix are not part of a package's name. The lists are not cached, because the module's folders change with every edit.
func (m *module) packages(name, like string) (out []string) {
	add := func(p string) {
		base := filepath.Base(p)
		if strings.HasPrefix(base, "v") && len(base) <= 3 && strings.Trim(base[1:], "0123456789") == "" {
			base = filepath.Base(filepath.Dir(p))
		}
		if base == name || strings.TrimPrefix(base, "go-") == name || strings.TrimSuffix(base, "-go") == name || like != "" && near(p, like) {
			out = append(out, p)
		}
	}
	for _, p := range standardPackages() {
		add(p)
	}
	for _, dir := range sortedKeys(m.dirs) {
		add(m.importPath(dir))
	}
	for _, r := range requirements(m.root, m.deps.modcache) {
		add(r.path)
		entries, _ := os.ReadDir(r.dir)
		for _, e := range entries {
			if e.IsDir() {
				add(r.path + "/" + e.Name())
			}
		}
	}
	return out
}

// unused removes a declaration that is not used, or assigns its value to the blank identifier. Removing has the lower cost, but
// only if it removes no call: the call may be the purpose of the line.
func (r *repairer) unused() {
	id := r.ident()
	if id == nil {
		return
	}
	// only a declaration can be unused
	if r.t.pkg.info.Defs[id] == nil {
		return
	}
	f := r.t.file
	// One mistake can make two errors: the statement that returned the variable is gone.
	if sig, body, _ := r.function(); sig != nil && sig.Results().Len() > 0 && slices.ContainsFunc(r.t.pkg.errs, func(e types.Error) bool {
		return body.Rbrace-1 <= e.Pos && e.Pos <= body.Rbrace
	}) {
		r.returnAtEnd(sig, body)
	}
	r.shadowed(r.t.pkg.info.Defs[id])
	for i, n := range r.around {
		switch x := n.(type) {
		case *ast.AssignStmt:
			// a plain assignment declares nothing, so this is another error
			if x.Tok != token.DEFINE {
				return
			}
			// With := at least one name on the left must be new; if none is new, "=" replaces it.
			blank := 0
			for _, l := range x.Lhs {
				if other, ok := l.(*ast.Ident); ok && (other == id || other.Name == "_") {
					blank++
				}
			}
			e := []edit{r.m.replace(id, "_")}
			if blank == len(x.Lhs) {
				e = append(e, edit{f.path, r.m.offset(x.TokPos), r.m.offset(x.TokPos) + 2, "="})
				// In a block the statement has its own lines. In the head of an if or a for, removing the line would remove the
				// beginning of the block too.
				if _, inBlock := r.around[i+1].(*ast.BlockStmt); inBlock {
					start, end := lineOf(f.text, r.m.offset(x.Pos()))
					if r.m.offset(x.End()) <= end && !hasCall(x.Rhs) {
						r.add(2, "Remove the unused "+id.Name, edit{f.path, start, end, ""})
					}
				}
			}
			r.add(4, "Do not keep "+id.Name, e...)
			return
		case *ast.ValueSpec:
			start, end := lineOf(f.text, r.m.offset(x.Pos()))
			// A list of names on one line, or a value with a call, stays: removing it would remove more than the name.
			if r.m.offset(x.End()) <= end && len(x.Names) == 1 && !hasCall(x.Values) {
				r.add(2, "Remove the unused "+id.Name, edit{f.path, start, end, ""})
			}
			r.add(4, "Do not keep "+id.Name, r.m.replace(id, "_"))
			return
		case *ast.RangeStmt:
			r.add(3, "Do not keep "+id.Name, r.m.replace(id, "_"))
			// for k := range x becomes for range x
			if x.Key == id && x.Value == nil {
				r.add(2, "Remove "+id.Name, edit{f.path, r.m.offset(x.Key.Pos()), r.m.offset(x.Range), ""})
			}
			return
		case *ast.LabeledStmt:
			r.add(2, "Remove the label", edit{f.path, r.m.offset(x.Label.Pos()), r.m.offset(x.Colon) + 1, ""})
			return
		}
	}
}

// shadowed assigns to a variable that is not used where an inner block declares all its names once more: x, y := y, f() in a loop was meant for
// the x and y before it.
func (r *repairer) shadowed(o types.Object) {
	scope := o.Parent()
	if scope == nil {
		return
	}
	ast.Inspect(r.t.file.syntax, func(n ast.Node) bool {
		if n == nil || n.End() < scope.Pos() || n.Pos() > scope.End() {
			return false
		}
		a, ok := n.(*ast.AssignStmt)
		if !ok || a.Tok != token.DEFINE || a.Pos() <= o.Pos() {
			return true
		}
		about := false
		for _, l := range a.Lhs {
			id, ok := l.(*ast.Ident)
			if !ok {
				return true
			}
			inner := r.t.pkg.info.Defs[id]
			if id.Name == "_" || inner == nil || inner.Parent() == nil || inner.Parent().Parent() == nil {
				return true
			}
			_, outer := inner.Parent().Parent().LookupParent(id.Name, a.Pos())
			if outer == nil || !types.Identical(outer.Type(), inner.Type()) {
				return true
			}
			about = about || outer == o
		}
		if about {
			at := r.m.offset(a.TokPos)
			r.add(1, "Assign instead of declaring", edit{r.t.file.path, at, at + 2, "="})
		}
		return true
	})
}

// hasCall reports whether an expression contains a call or a channel receive: removing it would change what the program does.
func hasCall(list []ast.Expr) (yes bool) {
	for _, e := range list {
		ast.Inspect(e, func(n ast.Node) bool {
			switch x := n.(type) {
			case *ast.CallExpr:
				yes = true
			case *ast.UnaryExpr:
				yes = yes || x.Op == token.ARROW
			}
			return !yes
		})
	}
	return yes
}

// assignments repairs := and =, and the number of values on both sides. Both directions are tried at every assignment near the
// error, because only the checker can tell which of them is wrong.
func (r *repairer) assignments() {
	a := find[*ast.AssignStmt](r.around)
	f := r.t.file
	if a != nil {
		at := r.m.offset(a.TokPos)
		switch a.Tok {
		case token.DEFINE:
			r.add(2, "Assign instead of declaring", edit{f.path, at, at + 2, "="})
		case token.ASSIGN:
			r.add(3, "Declare instead of assigning", edit{f.path, at, at + 1, ":="})
		}
		// one call with several values on the right
		if len(a.Rhs) == 1 {
			if want := tupleLen(r.typeOf(a.Rhs[0])); want >= 0 && want != len(a.Lhs) {
				switch {
				case len(a.Lhs) < want:
					r.add(5, "Take the other values too", r.m.insert(a.Lhs[len(a.Lhs)-1].End(), strings.Repeat(", _", want-len(a.Lhs))))
					if want == len(a.Lhs)+1 {
						r.add(6, "Take the other value too", r.m.insert(a.Lhs[0].Pos(), "_, "))
					}
				// The last name is removed first: people add to the end of a list.
				case want > 0:
					for i := range a.Lhs {
						r.add(5+len(a.Lhs)-i, "Drop "+r.text(a.Lhs[i]), dropItem(r.m, f, exprs(a.Lhs), i))
					}
				}
			}
		} else if len(a.Rhs) != len(a.Lhs) {
			for i := range a.Rhs {
				r.add(5, "Drop "+r.text(a.Rhs[i]), dropItem(r.m, f, exprs(a.Rhs), i))
			}
			for i := range a.Lhs {
				r.add(6, "Drop "+r.text(a.Lhs[i]), dropItem(r.m, f, exprs(a.Lhs), i))
			}
		}
	}
	if v := find[*ast.ValueSpec](r.around); v != nil && len(v.Values) == 1 {
		if want := tupleLen(r.typeOf(v.Values[0])); want > len(v.Names) {
			r.add(5, "Take the other values too", r.m.insert(v.Names[len(v.Names)-1].End(), strings.Repeat(", _", want-len(v.Names))))
		}
	}
	// The value of a call is not used, or the statement is a value.
	if s := find[*ast.ExprStmt](r.around); s != nil {
		// A call is a complete statement. Any other expression must be used for something.
		if _, call := s.X.(*ast.CallExpr); !call {
			start, end := lineOf(f.text, r.m.offset(s.Pos()))
			r.add(8, "Remove the expression", edit{f.path, start, end, ""})
		}
		r.add(7, "Do not keep the value", r.m.insert(s.Pos(), "_ = "))
		// People who know other languages write a == b when they mean an assignment.
		if b, ok := s.X.(*ast.BinaryExpr); ok && b.Op == token.EQL {
			at := r.m.offset(b.OpPos)
			r.add(2, "Assign instead of comparing", edit{f.path, at, at + 2, "="})
		}
	}
}

// exprs converts expressions to nodes, for dropItem.
func exprs(list []ast.Expr) (out []ast.Node) {
	for _, e := range list {
		out = append(out, e)
	}
	return out
}

// dropItem removes an item of a comma-separated list and the comma that belongs to it: none for a single item, the one before for
// the last item, the one after for all others.
func dropItem(m *module, f *file, list []ast.Node, i int) edit {
	switch {
	case len(list) == 1:
		return m.replace(list[0], "")
	case i+1 < len(list):
		return edit{f.path, m.offset(list[i].Pos()), m.offset(list[i+1].Pos()), ""}
	}
	return edit{f.path, m.offset(list[i-1].End()), m.offset(list[i].End()), ""}
}

// tupleLen is how many values an expression of this type has; -1 if unknown. A call without results has 0. A value that is not a
// call has 1.
func tupleLen(t types.Type) int {
	if t == nil {
		return -1
	}
	if tuple, ok := t.(*types.Tuple); ok {
		return tuple.Len()
	}
	return 1
}

// under returns the underlying type of t if it is a T; t may be nil.
func under[T types.Type](t types.Type) (out T, ok bool) {
	if t == nil {
		return out, false
	}
	out, ok = t.Underlying().(T)
	return out, ok
}

// calls repairs the innermost call around the error: its arguments, or a call of something that is not a function.
func (r *repairer) calls() {
	for depth, n := range r.around {
		c, ok := n.(*ast.CallExpr)
		// What ends where the error is reported is before it: f(g()) lacks an argument at the parenthesis behind g().
		if !ok || c.End() == r.t.pos {
			continue
		}
		sig, ok := under[*types.Signature](r.typeOf(c.Fun))
		if !ok {
			r.withoutSignature(c)
			// A call without arguments of something that is not a function: the parentheses are the mistake.
			if t := r.typeOf(c.Fun); t != nil && len(c.Args) == 0 { // not a function: a field or a variable
				r.add(3, "Do not call "+r.text(c.Fun), edit{r.t.file.path, r.m.offset(c.Lparen), r.m.offset(c.End()), ""})
			}
			continue
		}
		r.arguments(c, sig)
		if depth > 6 {
			return
		}
		break
	}
}

// uncalled calls the functions in the statement of the error that can be called without arguments and are not: with the parentheses lost, a
// value has the wrong type, there are too few values, or a member is missing.
func (r *repairer) uncalled() {
	var at ast.Node
	for _, n := range r.around {
		switch n.(type) {
		case ast.Stmt, *ast.ValueSpec:
			at = n
		}
		if at != nil {
			break
		}
	}
	if at == nil {
		return
	}
	called := map[ast.Expr]bool{}
	ast.Inspect(at, func(n ast.Node) bool {
		switch x := n.(type) {
		case *ast.BlockStmt, *ast.FuncLit:
			return n == at // what is in a block has statements of its own
		case *ast.CallExpr:
			called[ast.Unparen(x.Fun)] = true
		case *ast.Ident, *ast.SelectorExpr, *ast.IndexExpr:
			e := x.(ast.Expr)
			if s, ok := under[*types.Signature](r.typeOf(e)); ok && !called[e] && !r.t.pkg.info.Types[e].IsType() && (s.Params().Len() == 0 || s.Variadic() && s.Params().Len() == 1) {
				r.add(1, "Call it", r.m.insert(e.End(), "()"))
			}
		}
		return true
	})
}

// arguments repairs a call whose arguments do not match the signature: too many, too few, two swapped, or a slice that must be
// spread. For a missing argument a variable in scope with its type is offered first (see variable), then a zero value.
func (r *repairer) arguments(c *ast.CallExpr, sig *types.Signature) {
	f := r.t.file
	want, have := sig.Params().Len(), len(c.Args)
	// f(g()) passes all results of g
	if have == 1 {
		if n := tupleLen(r.typeOf(c.Args[0])); n > 1 {
			have = n
		}
	}
	least := want
	// a variadic parameter may get nothing
	if sig.Variadic() {
		least--
	}
	if have > want && !sig.Variadic() && len(c.Args) == have {
		for i := range c.Args {
			r.add(3+len(c.Args)-1-i, "Remove the argument "+r.text(c.Args[i]), dropItem(r.m, f, exprs(c.Args), i))
		}
		r.dropParameterOrAdd(c, sig, have)
	}
	if have < least && len(c.Args) == have {
		for i := 0; i <= len(c.Args); i++ {
			if i >= want {
				break
			}
			t := sig.Params().At(i).Type()
			fits := true // whether the remaining arguments fit when they are moved by one
			for j := i; j < len(c.Args) && j+1 < want; j++ {
				if at := r.typeOf(c.Args[j]); at != nil && !types.AssignableTo(at, sig.Params().At(j+1).Type()) {
					fits = false
				}
			}
			if !fits {
				continue
			}
			// Each place is tried for the missing argument, if the arguments after it fit when they are moved by one.
			values := []string{r.zero(t)}
			if name := r.variable(t, sig.Params().At(i).Name()); name != "" {
				// What the call has already is rarely meant twice.
				if slices.ContainsFunc(c.Args, func(a ast.Expr) bool { return r.text(a) == name }) {
					values = append(values, name)
				} else {
					values = []string{name, values[0]}
				}
			}
			for k, v := range values {
				missing := []string{v}
				// if more than one is missing, the others are zero values
				for j := len(c.Args) + 1; j < least; j++ {
					missing = append(missing, r.zero(sig.Params().At(j).Type()))
				}
				text := strings.Join(missing, ", ")
				cost := 5 + 2*k + len(c.Args) - i
				if i < len(c.Args) {
					r.add(cost, "Add the argument "+v, r.m.insert(c.Args[i].Pos(), text+", "))
				} else {
					if len(c.Args) > 0 {
						text = ", " + text
						r.add(cost, "Add the argument "+v, r.m.insert(c.Args[len(c.Args)-1].End(), text))
					} else {
						r.add(cost, "Add the argument "+v, r.m.insert(c.Lparen+1, text))
					}
				}
			}
		}
		r.dropParameterOrAdd(c, sig, have)
	}
	for i := 0; i+1 < len(c.Args); i++ { // two in the wrong order
		a, b := c.Args[i], c.Args[i+1]
		cost := 6
		// One that has the type of the other's place, and does not fit its own, needs no conversion.
		if i+1 < want {
			p, q := sig.Params().At(i).Type(), sig.Params().At(i+1).Type()
			if fits, exactly := r.fits(a, q); fits {
				if also, exactlyToo := r.fits(b, p); also && (exactly || exactlyToo) {
					cost = 1
				}
			}
		}
		r.add(cost, "Swap the arguments "+r.text(a)+" and "+r.text(b), r.m.replace(a, r.text(b)), r.m.replace(b, r.text(a)))
	}
	// f(list) where f(list...) was meant
	if sig.Variadic() && c.Ellipsis == token.NoPos && len(c.Args) == want {
		last := c.Args[len(c.Args)-1]
		if _, ok := under[*types.Slice](r.typeOf(last)); ok {
			r.add(3, "Spread "+r.text(last), r.m.insert(last.End(), "..."))
		}
	}
	if c.Ellipsis.IsValid() {
		at := r.m.offset(c.Ellipsis)
		r.add(4, "Do not spread the last argument", edit{f.path, at, at + 3, ""})
	}
}

// fits reports whether a value fits a type, and whether it is a variable of exactly this type. A constant has the type of the place where it is
// written, so it only has to be convertible; the checker decides.
func (r *repairer) fits(e ast.Expr, t types.Type) (fits, exactly bool) {
	have := r.typeOf(e)
	if have == nil {
		return false, false
	}
	if r.t.pkg.info.Types[e].Value != nil {
		return types.ConvertibleTo(have, t), false
	}
	return types.AssignableTo(have, t), types.Identical(have, t)
}

// dropParameterOrAdd changes the declaration instead of the call. Its cost is higher than that of a change of the call, so it is
// chosen only if several calls fail in the same way.
func (r *repairer) dropParameterOrAdd(c *ast.CallExpr, sig *types.Signature, have int) {
	// fn is nil for a function outside the module, which cannot be changed.
	fn := r.declaration(c.Fun)
	if fn == nil {
		return
	}
	names := 0
	var fields []ast.Node
	for _, p := range fn.Type.Params.List {
		names += max(1, len(p.Names))
		fields = append(fields, p)
	}
	path := r.m.pathOf(fn.Pos())
	// The names must have fields of their own: if several names share a type (a, b int), removing the field would remove them all.
	if have < names && len(fields) == names {
		for i := range fields {
			r.addDeep(9, "Remove the parameter "+r.text(fields[i])+" of "+fn.Name.Name, dropItem(r.m, r.m.files[path], fields, i))
		}
	}
	// The parameter gets the type of the last argument, and no name: nothing in the body uses it.
	if have == names+1 && have <= len(c.Args) {
		if t := r.typeOf(c.Args[len(c.Args)-1]); t != nil {
			text := "_ " + r.typeText(types.Default(t))
			if names > 0 {
				text = ", " + text
			}
			r.addDeep(11, "Add a parameter to "+fn.Name.Name, r.m.insert(fn.Type.Params.Closing, text))
		}
	}
}

// function is the innermost function around the error, with its results; nil where there is none.
func (r *repairer) function() (sig *types.Signature, body *ast.BlockStmt, results *ast.FieldList) {
	for _, n := range r.around {
		switch x := n.(type) {
		case *ast.FuncLit:
			sig, _ = r.typeOf(x).(*types.Signature)
			body, results = x.Body, x.Type.Results
		case *ast.FuncDecl:
			if o := r.t.pkg.info.Defs[x.Name]; o != nil {
				sig, _ = o.Type().(*types.Signature)
			}
			body, results = x.Body, x.Type.Results
		}
		if sig != nil {
			break
		}
	}
	if body == nil {
		return nil, nil, nil
	}
	return sig, body, results
}

// zeros are the zero values of a function's results, from the result with this index on.
func (r *repairer) zeros(sig *types.Signature, from int) (out []string) {
	for i := from; i < sig.Results().Len(); i++ {
		out = append(out, r.zero(sig.Results().At(i).Type()))
	}
	return out
}

// returnAtEnd returns values at the end of a function that has results.
func (r *repairer) returnAtEnd(sig *types.Signature, body *ast.BlockStmt) {
	f := r.t.file
	start, _ := lineOf(f.text, r.m.offset(body.Rbrace))
	indent := f.text[start:r.m.offset(body.Rbrace)]
	// the body is on one line: the statement is inserted directly before the brace
	if strings.TrimSpace(indent) != "" {
		start, indent = r.m.offset(body.Rbrace), ""
	}
	if strings.TrimSpace(f.text[start:r.m.offset(body.Rbrace)]) != "" {
		return
	}
	if name := sig.Results().At(0).Name(); name != "" && name != "_" {
		r.add(2, "Return at the end", edit{f.path, start, start, indent + "\treturn\n"})
	}
	values := r.zeros(sig, 0)
	for i := range values { // a value that the function has computed is more likely than a zero value
		if v := r.last(body, sig.Results().At(i).Type()); v != "" {
			values[i] = v
		}
	}
	zeros := r.zeros(sig, 0)
	// No error and no value would say that the function succeeded, although nothing is known of what it should do here.
	if last := len(zeros) - 1; last > 0 && slices.Equal(values, zeros) && isError(sig.Results().At(last).Type()) {
		r.returnErrorAtEnd(start, indent, zeros[:last])
		return
	}
	r.add(3, "Return at the end", edit{f.path, start, start, indent + "\treturn " + strings.Join(values, ", ") + "\n"})
	r.add(5, "Return zero values at the end", edit{f.path, start, start, indent + "\treturn " + strings.Join(zeros, ", ") + "\n"})
}

// NoResult is the end of an error's text. A fix returns that error where it cannot know what a function should return. Like a stub, the code compiles,
// and a person has to finish it.
const NoResult = ": no result"

// returnErrorAtEnd returns these values and a new error at an offset.
func (r *repairer) returnErrorAtEnd(start int, indent string, values []string) {
	name := "function"
	if fn := find[*ast.FuncDecl](r.around); fn != nil {
		name = fn.Name.Name
	}
	p, err := r.m.Import("errors")
	if err != nil {
		return
	}
	edits := []edit{{r.t.file.path, start, start, indent + "\treturn " + strings.Join(append(values, fmt.Sprintf("%s.New(%q)", r.qualifier(p), name+NoResult)), ", ") + "\n"}}
	if !slices.ContainsFunc(r.t.file.syntax.Imports, func(i *ast.ImportSpec) bool { return i.Path.Value == `"errors"` }) {
		edits = append(edits, r.importEdit("errors"))
	}
	r.add(4, "Return an error at the end", edits...)
}

// returns repairs the values of a return statement, and a missing return at the end of a function.
func (r *repairer) returns() {
	sig, body, results := r.function()
	if sig == nil {
		return
	}
	f := r.t.file
	ret := find[*ast.ReturnStmt](r.around)
	if ret == nil {
		// go/types reports a missing return at the closing brace.
		if sig.Results().Len() > 0 && r.t.pos >= body.Rbrace-1 {
			r.returnAtEnd(sig, body)
			// The last statement may be the value: "x + 1" at the end of a body, as in languages where the last expression is the
			// result.
			if n := len(body.List); n > 0 {
				if s, ok := body.List[n-1].(*ast.ExprStmt); ok {
					r.add(2, "Return the last value", r.m.insert(s.Pos(), "return "))
				}
			}
			if results != nil {
				r.addDeep(9, "Return nothing", edit{f.path, r.m.offset(results.Pos()), r.m.offset(results.End()), ""})
			}
		}
		return
	}
	have, want := len(ret.Results), sig.Results().Len()
	switch {
	case have < want:
		switch have {
		case 0:
			r.add(4, "Return zero values", edit{f.path, r.m.offset(ret.End()), r.m.offset(ret.End()), " " + strings.Join(r.zeros(sig, 0), ", ")})
		default:
			r.add(3, "Return the values that are missing", r.m.insert(ret.Results[have-1].End(), ", "+strings.Join(r.zeros(sig, have), ", ")))
			if want == have+1 {
				r.add(4, "Return the value that is missing", r.m.insert(ret.Results[0].Pos(), r.zero(sig.Results().At(0).Type())+", "))
			}
		}
		// Each result must have its own field, so that removing one keeps the others.
		if results != nil && results.NumFields() == want && want == have+1 && len(results.List) == want {
			var list []ast.Node
			for _, x := range results.List {
				list = append(list, x)
			}
			for i := range list {
				r.addDeep(8, "Remove the result "+r.text(list[i]), dropItem(r.m, f, list, i))
			}
		}
	case have > want:
		for i := range ret.Results {
			r.add(4+len(ret.Results)-i, "Do not return "+r.text(ret.Results[i]), dropItem(r.m, f, exprs(ret.Results), i))
		}
		if want == 0 && have > 0 {
			r.add(7, "Return nothing", edit{f.path, r.m.offset(ret.Results[0].Pos()), r.m.offset(ret.End()), ""})
			if t := r.typeOf(ret.Results[0]); t != nil && have == 1 && results == nil {
				if fn := find[*ast.FuncDecl](r.around); fn != nil {
					r.addDeep(5, "Declare the result", r.m.insert(fn.Type.Params.End(), " "+r.typeText(types.Default(t))))
				}
			}
		}
		if results != nil && want > 0 && have == want+1 {
			if t := r.typeOf(ret.Results[have-1]); t != nil {
				text := r.typeText(types.Default(t))
				// "return x, nil" in a function with one result: an error result is most likely missing
				if r.zero(t) == "nil" && text == "untyped nil" {
					text = "error"
				}
				if results.Opening.IsValid() {
					r.addDeep(6, "Declare another result", r.m.insert(results.Closing, ", "+text))
				} else {
					r.addDeep(6, "Declare another result", edit{f.path, r.m.offset(results.Pos()), r.m.offset(results.End()), "(" + r.text(results) + ", " + text + ")"})
				}
			}
		}
	}
}

// isError reports whether a type is the predeclared error.
func isError(t types.Type) bool { return types.Identical(t, types.Universe.Lookup("error").Type()) }

// mismatches repairs an expression whose type is not the one that its place needs.
func (r *repairer) mismatches() {
	for _, w := range r.wanted() {
		r.convert(w.expr, w.want, w.cost)
		r.declared(w.expr, w.want)
	}
	for _, n := range r.around {
		switch x := n.(type) {
		case *ast.Ident:
			r.calledBefore(x)
		case *ast.BinaryExpr:
			r.calledBefore(x.X)
			r.calledBefore(x.Y)
		case *ast.AssignStmt:
			for _, l := range x.Lhs {
				r.calledBefore(l)
			}
		}
	}
}

// underlying is the underlying type, also through one pointer; nil for nil.
func underlying(t types.Type) types.Type {
	if t == nil {
		return nil
	}
	if p, ok := t.Underlying().(*types.Pointer); ok {
		return p.Elem().Underlying()
	}
	return t.Underlying()
}

// convert offers edits that make a value of the needed type from an expression. Every candidate replaces only the text of e. Costs
// are added to those of the wish; 0 and 1 are for edits without an alternative.
func (r *repairer) convert(e ast.Expr, want types.Type, cost int) {
	have := r.typeOf(e)
	if have == nil || want == nil || types.Identical(have, want) && !isInvalid(want) {
		return
	}
	text, name := r.text(e), r.typeText(want)
	if text == "" {
		return
	}
	put := func(c int, title, text string) { r.add(cost+c, title, r.m.replace(e, text)) }
	basic := func(t types.Type) types.BasicInfo {
		if b, ok := t.Underlying().(*types.Basic); ok {
			return b.Info()
		}
		return 0
	}
	isString, isNumber := basic(want)&types.IsString != 0, basic(want)&types.IsNumeric != 0
	// A literal can be written as a literal of the other kind.
	if lit, ok := ast.Unparen(e).(*ast.BasicLit); ok {
		switch {
		case lit.Kind == token.STRING && isNumber:
			if inner := strings.Trim(lit.Value, "\"`"); inner != "" && strings.Trim(inner, "0123456789.-") == "" {
				put(1, "Write it as a number", inner)
			}
			// the text is not a number
			put(4, "Use the zero value", "0")
		case lit.Kind != token.STRING && isString:
			put(1, "Write it as a string", `"`+strings.Trim(lit.Value, "'")+`"`)
		case lit.Kind == token.CHAR && isString:
			put(1, "Write it as a string", `"`+strings.Trim(lit.Value, "'")+`"`)
		case lit.Kind == token.STRING && basic(want)&types.IsBoolean != 0:
			if inner := strings.Trim(lit.Value, "\"`"); inner == "true" || inner == "false" {
				put(1, "Write it as a truth value", inner)
			}
		case lit.Kind == token.STRING && basic(want)&types.IsInteger != 0 && len(lit.Value) == 3:
			put(1, "Write it as a character", "'"+lit.Value[1:2]+"'")
		case lit.Kind == token.FLOAT && basic(want)&types.IsInteger != 0:
			whole, _, _ := strings.Cut(lit.Value, ".")
			put(1, "Write it as a whole number", whole)
		case (lit.Value == "0" || lit.Value == "1") && basic(want)&types.IsBoolean != 0:
			put(1, "Write it as a truth value", map[string]string{"0": "false", "1": "true"}[lit.Value])
		}
		put(9, "Use the zero value", r.zero(want))
	}
	switch {
	// A conversion of an integer to string gives a character, which is rarely meant: formatting comes first.
	case basic(have)&types.IsInteger != 0 && isString:
		if basic(have)&types.IsUntyped == 0 && !r.imported("strconv") {
			put(6, "Format the number", "fmt.Sprint("+text+")")
		}
		put(3, "Format the number", "strconv.Itoa("+text+")")
		if basic(have)&types.IsInteger != 0 {
			put(5, "Convert to string", name+"(rune("+text+"))")
		}
	case types.ConvertibleTo(have, want):
		put(2, "Convert to "+name, wrap(name)+"("+text+")")
	}
	if p, ok := have.Underlying().(*types.Pointer); ok && types.AssignableTo(p.Elem(), want) {
		put(1, "Dereference it", "*"+text)
		// &x becomes x if the pointer would be dereferenced at once
		if u, ok := ast.Unparen(e).(*ast.UnaryExpr); ok && u.Op == token.AND {
			put(0, "Do not take its address", r.text(u.X))
		}
	}
	if lit, ok := ast.Unparen(e).(*ast.FuncLit); ok {
		if s, ok := under[*types.Signature](want); ok {
			r.signature("the function", lit.Type, s, false)
		}
	}
	if types.AssignableTo(types.NewPointer(have), want) {
		put(1, "Take its address", "&"+text)
		if u, ok := ast.Unparen(e).(*ast.StarExpr); ok {
			put(0, "Do not dereference it", r.text(u.X))
		}
	}
	if u, ok := ast.Unparen(e).(*ast.UnaryExpr); ok && u.Op == token.AND {
		if t := r.typeOf(u.X); t != nil && types.AssignableTo(t, want) {
			put(0, "Do not take its address", r.text(u.X))
		}
	}
	if c, ok := ast.Unparen(e).(*ast.CallExpr); ok {
		// An interface without methods takes a function too, but the value was meant.
		if t := r.typeOf(c.Fun); t != nil && types.AssignableTo(t, want) && !types.IsInterface(want) {
			put(1, "Do not call it", r.text(c.Fun))
		}
		if len(c.Args) == 1 { // an unnecessary conversion
			// A conversion of nil is written to name a type, as in "var _ I = (*T)(nil)": without it nothing would be checked.
			if t := r.typeOf(c.Args[0]); t != nil && t != types.Typ[types.UntypedNil] && types.AssignableTo(t, want) {
				put(2, "Do not convert it", r.text(c.Args[0]))
			}
		}
	}
	// The methods that convert values of the standard library to text, to bytes or to the error inside.
	for _, method := range []string{"String", "Error", "Bytes", "Unwrap"} {
		o, _, _ := types.LookupFieldOrMethod(have, true, r.t.pkg.types, method)
		if fn, ok := o.(*types.Func); ok {
			s := fn.Type().(*types.Signature)
			if s.Params().Len() == 0 && s.Results().Len() == 1 && types.AssignableTo(s.Results().At(0).Type(), want) {
				put(2, "Call "+method, text+"."+method+"()")
			}
		}
	}
	switch u := have.Underlying().(type) {
	case *types.Slice:
		if types.AssignableTo(u.Elem(), want) {
			put(6, "Take the first element", text+"[0]")
		}
		if basic(want)&types.IsInteger != 0 {
			put(3, "Take its length", "len("+text+")")
		}
	case *types.Struct:
		for i := range u.NumFields() {
			// fields that this package can see
			if f := u.Field(i); types.Identical(f.Type(), want) && (f.Exported() || f.Pkg() == r.t.pkg.types) {
				put(5, "Take its field "+f.Name(), text+"."+f.Name())
			}
		}
	}
	// a single value, but the place needs a list
	if s, ok := want.Underlying().(*types.Slice); ok && types.AssignableTo(have, s.Elem()) {
		put(4, "Make it a list", name+"{"+text+"}")
	}
	if basic(want)&types.IsBoolean != 0 {
		switch {
		case basic(have)&types.IsNumeric != 0:
			put(4, "Compare it with zero", text+" != 0")
		case basic(have)&types.IsString != 0:
			put(4, "Compare it with the empty string", text+` != ""`)
		case r.zero(have) == "nil":
			put(4, "Compare it with nil", text+" != nil")
		}
	}
	if b, ok := have.(*types.Basic); ok && b.Kind() == types.UntypedNil {
		put(2, "Use the zero value", r.zero(want))
	}
	// Another variable was meant: a name of the needed type with a similar spelling.
	if id, ok := ast.Unparen(e).(*ast.Ident); ok {
		if v := r.variable(want, id.Name); v != "" && v != id.Name {
			put(5+slips(v, id.Name), "Use "+v, v)
		}
	}
	if sel, ok := ast.Unparen(e).(*ast.SelectorExpr); ok {
		for _, o := range allMembersOf(r.typeOf(sel.X)) {
			if similar(o.Name(), sel.Sel.Name) {
				r.add(cost+3+slips(o.Name(), sel.Sel.Name), "Change "+sel.Sel.Name+" to "+o.Name(), r.m.replace(sel.Sel, o.Name()))
			}
		}
	}
}

// allMembersOf is allMembers for a type that may be nil.
func allMembersOf(t types.Type) []types.Object {
	if t == nil {
		return nil
	}
	return allMembers(t)
}

// isInvalid reports whether a type is the one that go/types gives to an expression it could not check.
func isInvalid(t types.Type) bool { return t == types.Typ[types.Invalid] }

// wrap puts a type that begins with an operator in parentheses, as a conversion needs: "*T(x)" would dereference the result of
// T(x).
func wrap(name string) string {
	if strings.HasPrefix(name, "*") || strings.HasPrefix(name, "<-") || strings.HasPrefix(name, "func") {
		return "(" + name + ")"
	}
	return name
}

// declared changes the declared type of a variable, field, parameter or result that does not fit. If there are many errors for one
// declaration, the declaration is probably the mistake.
func (r *repairer) declared(e ast.Expr, want types.Type) {
	change := func(o types.Object, to types.Type) {
		if to == nil || isInvalid(to) {
			return
		}
		if name, at := r.origin(o); at != nil {
			r.addDeep(6, "Declare "+name+" as "+r.typeText(types.Default(to)), r.m.replace(at, r.typeText(types.Default(to))))
		}
	}
	if o := r.object(e); o != nil {
		change(o, want)
	}
	r.items(e, want)
	// The declaration of the place.
	// The other side of the mismatch: the parameter, variable, field or result that gets the value.
	have := r.typeOf(e)
	for i, n := range r.around {
		if n != ast.Node(e) || i+1 >= len(r.around) {
			continue
		}
		switch p := r.around[i+1].(type) {
		case *ast.CallExpr:
			fn := r.declaration(p.Fun)
			if fn == nil {
				break
			}
			at := -1
			for k, a := range p.Args {
				if a == e {
					at = k
				}
			}
			for _, field := range fn.Type.Params.List {
				n := max(1, len(field.Names))
				// at counts the names of the fields: a, b int is one field with two names
				if at >= 0 && at < n && have != nil {
					r.addDeep(7, "Change the parameter's type to "+r.typeText(types.Default(have)), r.m.replace(field.Type, r.typeText(types.Default(have))))
				}
				at -= n
			}
		case *ast.AssignStmt:
			for k, x := range p.Rhs {
				if x == e && k < len(p.Lhs) {
					change(r.object(p.Lhs[k]), have)
				}
			}
		case *ast.ValueSpec:
			if p.Type != nil && have != nil {
				r.addDeep(5, "Change the declared type", r.m.replace(p.Type, r.typeText(types.Default(have))))
			}
		case *ast.KeyValueExpr:
			if id, ok := p.Key.(*ast.Ident); ok {
				change(r.t.pkg.info.Uses[id], have)
			}
		case *ast.CompositeLit:
			// the field at the same place
			if s, ok := underlying(r.typeOf(p)).(*types.Struct); ok {
				for k, x := range p.Elts {
					if x == e && k < s.NumFields() {
						change(s.Field(k), have)
					}
				}
			}
		case *ast.BinaryExpr:
			change(r.object(p.X), r.typeOf(p.Y))
			change(r.object(p.Y), r.typeOf(p.X))
		case *ast.ReturnStmt:
			at := -1
			for k, x := range p.Results {
				if x == e {
					at = k
				}
			}
			// the results of the function that the return belongs to
			var results *ast.FieldList
			for _, n := range r.around[i:] {
				if fn, ok := n.(*ast.FuncDecl); ok {
					results = fn.Type.Results
					break
				}
				if fn, ok := n.(*ast.FuncLit); ok {
					results = fn.Type.Results
					break
				}
			}
			if results == nil || have == nil {
				break
			}
			for _, field := range results.List {
				n := max(1, len(field.Names))
				if at >= 0 && at < n {
					r.addDeep(7, "Change the result's type to "+r.typeText(types.Default(have)), r.m.replace(field.Type, r.typeText(types.Default(have))))
				}
				at -= n
			}
		}
	}
	// The result of the called function; return f() needs each result of f.
	c, ok := ast.Unparen(e).(*ast.CallExpr)
	if !ok {
		return
	}
	if have, ok := have.(*types.Tuple); ok {
		sig, _, _ := r.function()
		for i := range have.Len() {
			if sig == nil || sig.Results().Len() != have.Len() {
				break
			}
			if to := sig.Results().At(i).Type(); !types.AssignableTo(have.At(i).Type(), to) {
				if name, at := r.resultOf(c, i); at != nil {
					r.addDeep(7, "Declare "+name+" as "+r.typeText(to), r.m.replace(at, r.typeText(to)))
				}
			}
		}
	} else if name, at := r.resultOf(c, 0); at != nil {
		r.addDeep(7, "Declare "+name+" as "+r.typeText(types.Default(want)), r.m.replace(at, r.typeText(types.Default(want))))
	}
}

// literals repairs composite literals and other places where a small edit helps.
func (r *repairer) literals() {
	f := r.t.file
	if lit := find[*ast.CompositeLit](r.around); lit != nil {
		// only the element at the error
		for i, e := range lit.Elts {
			if e.Pos() <= r.t.pos && r.t.pos <= e.End() {
				r.add(7, "Remove "+r.text(e), dropItem(r.m, f, exprs(lit.Elts), i))
			}
		}
	}
	for _, n := range r.around {
		switch x := n.(type) {
		case *ast.StarExpr:
			r.add(3, "Do not dereference it", r.m.replace(x, r.text(x.X)))
		case *ast.UnaryExpr:
			r.add(5, "Leave the operator out", r.m.replace(x, r.text(x.X)))
		case *ast.BranchStmt:
			if x.Label != nil {
				r.add(4, "Leave the label out", edit{f.path, r.m.offset(x.TokPos) + len(x.Tok.String()), r.m.offset(x.End()), ""})
			}
			start, end := lineOf(f.text, r.m.offset(x.Pos()))
			r.add(8, "Remove the statement", edit{f.path, start, end, ""})
		case *ast.TypeAssertExpr:
			r.add(4, "Leave the type assertion out", r.m.replace(x, r.text(x.X)))
			if x.Type != nil {
				r.add(3, "Assert a pointer", r.m.insert(x.Type.Pos(), "*"))
			}
		case *ast.CaseClause:
			// case T where only *T implements the interface of a type switch
			for _, e := range x.List {
				if e.Pos() <= r.t.pos && r.t.pos <= e.End() {
					r.add(2, "Change "+r.text(e)+" to *"+r.text(e), r.m.insert(e.Pos(), "*"))
				}
			}
			return
		case *ast.BinaryExpr:
			for _, op := range near2(x.Op) {
				at := r.m.offset(x.OpPos)
				r.add(5, "Change "+x.Op.String()+" to "+op.String(), edit{f.path, at, at + len(x.Op.String()), op.String()})
			}
		// expressions outside the statement do not cause the error
		case ast.Stmt:
			return
		}
	}
}

// near2 returns the operators that people confuse with this one. Comparison operators are missing, because mixing them up compiles.
func near2(op token.Token) []token.Token {
	switch op {
	case token.AND:
		return []token.Token{token.LAND}
	case token.OR:
		return []token.Token{token.LOR}
	case token.LAND:
		return []token.Token{token.AND}
	case token.LOR:
		return []token.Token{token.OR}
	}
	return nil
}

// duplicates removes a second declaration or field with the same name. Its cost is higher than that of nearly every other
// candidate, because it deletes text.
func (r *repairer) duplicates() {
	f := r.t.file
	for i, n := range r.around {
		switch x := n.(type) {
		case *ast.FuncDecl:
			// go/types reports the second of two declarations.
			if x.Name.Pos() == r.t.pos {
				start, _ := lineOf(f.text, r.m.offset(x.Pos()))
				if x.Doc != nil {
					start, _ = lineOf(f.text, r.m.offset(x.Doc.Pos()))
				}
				_, end := lineOf(f.text, r.m.offset(x.End())-1)
				r.addDeep(14, "Remove the second "+x.Name.Name, edit{f.path, start, end, ""})
			}
		case *ast.Field:
			if i+1 < len(r.around) {
				if list, ok := r.around[i+1].(*ast.FieldList); ok && list.Opening.IsValid() {
					start, end := lineOf(f.text, r.m.offset(x.Pos()))
					// a field on the same line as others stays
					if r.m.offset(x.End()) <= end && strings.TrimSpace(f.text[start:r.m.offset(x.Pos())]) == "" {
						r.addDeep(12, "Remove the second field", edit{f.path, start, end, ""})
					}
				}
			}
		case *ast.ValueSpec, *ast.TypeSpec:
			start, end := lineOf(f.text, r.m.offset(x.Pos()))
			if _, last := lineOf(f.text, r.m.offset(x.End())-1); last == end {
				r.addDeep(13, "Remove the second declaration", edit{f.path, start, end, ""})
			}
		}
	}
}

// methods repairs a type that does not implement an interface because a method has a misspelled name or another signature.
func (r *repairer) methods() {
	// Each guess is expensive, because importers are checked too; so a method is tried only if its name is near.
	for _, w := range r.wanted() {
		i, ok := under[*types.Interface](w.want)
		have := r.typeOf(w.expr)
		if !ok || have == nil {
			continue
		}
		members := allMembers(have)
		for k := range i.NumMethods() {
			want := i.Method(k)
			// The method is renamed, or gets the signature of the interface's method.
			for _, o := range members {
				fn, ok := o.(*types.Func)
				if !ok {
					continue
				}
				if o.Name() != want.Name() && similar(o.Name(), want.Name()) {
					r.renameObject(o, want.Name(), slips(o.Name(), want.Name())+2)
				}
				if o.Name() == want.Name() && !types.Identical(fn.Type(), want.Type()) {
					if decl := r.methodDeclaration(fn); decl != nil {
						r.signature(fn.Name(), decl.Type, want.Type().(*types.Signature), true)
					}
				}
			}
			// The method of the interface may have been changed instead.
			for _, o := range members {
				if o.Name() != want.Name() && similar(o.Name(), want.Name()) {
					r.renameObject(want, o.Name(), slips(o.Name(), want.Name())+3)
				}
			}
		}
		// the methods may have pointer receivers
		if _, ptr := have.(*types.Pointer); !ptr {
			r.add(1, "Take its address", r.m.insert(w.expr.Pos(), "&"))
		}
	}
}

// methodDeclaration is the declaration of a method of the module, or nil.
func (r *repairer) methodDeclaration(fn *types.Func) *ast.FuncDecl {
	f := r.m.files[r.m.pathOf(fn.Pos())]
	if f == nil {
		return nil
	}
	for _, d := range f.syntax.Decls {
		if decl, ok := d.(*ast.FuncDecl); ok && decl.Name.Pos() == fn.Pos() {
			return decl
		}
	}
	return nil
}

// signature gives a method the parameter and result types of the interface's method, or a function literal those of its place. Parameter
// names stay, because the body uses them. deep says that other packages may use the function.
func (r *repairer) signature(what string, have *ast.FuncType, want *types.Signature, deep bool) {
	add := func(cost int, title string, edits ...edit) {
		r.out = append(r.out, candidate{title: title, cost: cost, edits: edits, deep: deep})
	}
	var edits []edit
	at := 0
	for _, field := range have.Params.List {
		// several names with one type, or a variadic parameter, are not changed
		if at < want.Params().Len() && len(field.Names) <= 1 {
			if t := r.typeText(want.Params().At(at).Type()); t != r.text(field.Type) && !strings.HasPrefix(r.text(field.Type), "...") {
				edits = append(edits, r.m.replace(field.Type, t))
			}
		}
		at += max(1, len(field.Names))
	}
	if at == want.Params().Len() && len(edits) > 0 {
		add(4, "Give "+what+" the parameters that are needed", edits...)
	}
	var results []string
	for i := range want.Results().Len() {
		results = append(results, r.typeText(want.Results().At(i).Type()))
	}
	text := strings.Join(results, ", ")
	if len(results) > 1 {
		text = "(" + text + ")"
	}
	if have.Results != nil {
		add(5, "Give "+what+" the results that are needed", r.m.replace(have.Results, text))
	} else if text != "" {
		add(5, "Give "+what+" the results that are needed", r.m.insert(have.Params.End(), " "+text))
	}
}
