// Package mutate introduces mistakes into Go source, such as people and models make, one at a time and each at a random place. It is for
// tests and benchmarks.
package mutate

import (
	"go/ast"
	"go/parser"
	"go/token"
	"math/rand/v2"
	"sort"
	"strings"
	"unicode"
)

// Kinds are the mistakes that are known. They were collected from what models' edits of real Go modules break, and
// from compilers' most frequent errors. Find switches on these names.
var Kinds = []string{"misspelt use", "renamed declaration", "lost import", "unused variable", "unused import", "missing argument", "surplus argument",
	"missing return", "missing result", "declared as assigned", "assigned as declared", "wrong literal", "wrong parameter type", "wrong field type",
	"lost operator", "lost bracket", "wrong case", "lost conversion", "swapped arguments", "misspelt member", "misspelt keyword", "lost call"}

// Mistake is one edit: bytes Start to End become Text.
// The offsets refer to the text that Find was given. A mistake does not always break the build: a swapped pair of
// arguments of one type still compiles, and the caller must check.
type Mistake struct {
	Kind       string
	Start, End int
	Text       string
}

// Apply makes the wrong text. The benchmark then asks the built-in model to mend it and
// compares the number of errors, not the text: there are often several right answers.
func (m Mistake) Apply(text string) string { return text[:m.Start] + m.Text + text[m.End:] }

// Find gives a mistake of a kind for a file's text, which must parse; false when the file has no place for one.
// The same rng state, kind and text give the same mistake, so that a benchmark can be repeated.
func Find(rng *rand.Rand, kind, text string) (Mistake, bool) {
	fset := token.NewFileSet()
	// The file's name does not matter: only the syntax is read, never the types.
	f, err := parser.ParseFile(fset, "x.go", text, 0)
	if err != nil {
		return Mistake{}, false
	}
	// bytes from the beginning of the text
	off := func(p token.Pos) int { return fset.Position(p).Offset }
	var all []Mistake
	add := func(a, b token.Pos, with string) {
		all = append(all, Mistake{kind, off(a), off(b), with})
	}
	src := func(n ast.Node) string { return text[off(n.Pos()):off(n.End())] }
	// the nodes from the file down to n; Inspect calls with nil when it leaves one
	var stack []ast.Node
	ast.Inspect(f, func(n ast.Node) bool {
		if n == nil {
			stack = stack[:len(stack)-1]
			return true
		}
		var parent ast.Node
		if len(stack) > 0 {
			parent = stack[len(stack)-1]
		}
		stack = append(stack, n)
		switch kind {
		case "misspelt use":
			// Names of more than three letters only: a slip in a short one gives another short name that often
			// exists. The same in the other kinds that misspell.
			if id, ok := n.(*ast.Ident); ok && len(id.Name) > 3 {
				if _, sel := parent.(*ast.CallExpr); sel {
					add(id.Pos(), id.End(), slip(rng, id.Name))
				}
				if b, ok := parent.(*ast.BinaryExpr); ok && b != nil {
					add(id.Pos(), id.End(), slip(rng, id.Name))
				}
			}
		case "misspelt member":
			if s, ok := n.(*ast.SelectorExpr); ok && len(s.Sel.Name) > 3 {
				add(s.Sel.Pos(), s.Sel.End(), slip(rng, s.Sel.Name))
			}
		case "wrong case":
			if s, ok := n.(*ast.SelectorExpr); ok {
				r := []rune(s.Sel.Name)
				if unicode.IsUpper(r[0]) {
					r[0] = unicode.ToLower(r[0])
				} else {
					r[0] = unicode.ToUpper(r[0])
				}
				add(s.Sel.Pos(), s.Sel.End(), string(r))
			}
		case "renamed declaration":
			switch x := n.(type) {
			case *ast.FuncDecl:
				// main, init and tests are called by the toolchain, which finds them by name
				if len(x.Name.Name) > 3 && x.Name.Name != "main" && x.Name.Name != "init" && !strings.HasPrefix(x.Name.Name, "Test") {
					add(x.Name.Pos(), x.Name.End(), slip(rng, x.Name.Name))
				}
			case *ast.TypeSpec:
				if len(x.Name.Name) > 3 {
					add(x.Name.Pos(), x.Name.End(), slip(rng, x.Name.Name))
				}
			case *ast.Field:
				if _, ok := parent.(*ast.FieldList); ok && len(x.Names) == 1 && len(x.Names[0].Name) > 3 {
					add(x.Names[0].Pos(), x.Names[0].End(), slip(rng, x.Names[0].Name))
				}
			}
		case "lost import":
			// An import without a name of its own, in a block: the whole line goes.
			if s, ok := n.(*ast.ImportSpec); ok && s.Name == nil {
				if gd, ok := parent.(*ast.GenDecl); ok && gd.Lparen.IsValid() {
					a, b := off(s.Pos()), off(s.End())
					for a > 0 && text[a-1] != '\n' {
						a--
					}
					for b < len(text) && text[b] != '\n' {
						b++
					}
					all = append(all, Mistake{kind, a, min(b+1, len(text)), ""})
				}
			}
		case "unused import":
			// container/ring is in every installation, and next to no program imports it.
			if gd, ok := n.(*ast.GenDecl); ok && gd.Tok == token.IMPORT && gd.Lparen.IsValid() && !strings.Contains(text, `"container/ring"`) {
				add(gd.Lparen+1, gd.Lparen+1, "\n\t\"container/ring\"")
			}
		case "unused variable":
			// only the body of a function: a variable in an inner block is the same error
			if b, ok := n.(*ast.BlockStmt); ok {
				if _, fn := parent.(*ast.FuncDecl); fn && len(b.List) > 0 {
					add(b.Lbrace+1, b.Lbrace+1, "\n\tleftOver := 1\n")
				}
			}
		case "missing argument", "surplus argument", "swapped arguments":
			c, ok := n.(*ast.CallExpr)
			if !ok {
				break
			}
			switch {
			case kind == "missing argument" && len(c.Args) > 0:
				// the comma before the argument goes with it
				if last := len(c.Args) - 1; last == 0 {
					add(c.Args[0].Pos(), c.Args[0].End(), "")
				} else {
					add(c.Args[last-1].End(), c.Args[last].End(), "")
				}
			case kind == "surplus argument" && len(c.Args) > 0 && !c.Ellipsis.IsValid():
				// of three types that rarely fit all at once
				add(c.Args[len(c.Args)-1].End(), c.Args[len(c.Args)-1].End(), []string{", nil", ", 0", `, ""`}[rng.IntN(3)])
			case kind == "swapped arguments" && len(c.Args) > 1:
				add(c.Args[0].Pos(), c.Args[1].End(), src(c.Args[1])+", "+src(c.Args[0]))
			}
		case "missing return":
			// a body of a single return would become empty, which reads as a stub and not as a slip
			if fn, ok := n.(*ast.FuncDecl); ok && fn.Body != nil && fn.Type.Results != nil && len(fn.Body.List) > 1 {
				if r, ok := fn.Body.List[len(fn.Body.List)-1].(*ast.ReturnStmt); ok {
					add(r.Pos(), r.End(), "")
				}
			}
		case "missing result":
			if r, ok := n.(*ast.ReturnStmt); ok && len(r.Results) > 1 {
				add(r.Results[len(r.Results)-2].End(), r.Results[len(r.Results)-1].End(), "")
			}
		case "declared as assigned":
			if a, ok := n.(*ast.AssignStmt); ok && a.Tok == token.DEFINE {
				add(a.TokPos, a.TokPos+2, "=")
			}
		case "assigned as declared":
			if a, ok := n.(*ast.AssignStmt); ok && a.Tok == token.ASSIGN {
				add(a.TokPos, a.TokPos+1, ":=")
			}
		case "wrong literal":
			if l, ok := n.(*ast.BasicLit); ok {
				// an import path and a struct tag are literals that are not values
				if _, imp := parent.(*ast.ImportSpec); imp {
					break
				}
				if _, field := parent.(*ast.Field); field {
					break
				}
				switch l.Kind {
				case token.INT:
					add(l.Pos(), l.End(), `"`+l.Value+`"`)
				case token.STRING:
					add(l.Pos(), l.End(), "42")
				}
			}
		case "wrong parameter type":
			if fn, ok := n.(*ast.FuncDecl); ok {
				for _, p := range fn.Type.Params.List {
					add(p.Type.Pos(), p.Type.End(), other(src(p.Type)))
				}
			}
		case "wrong field type":
			if s, ok := n.(*ast.StructType); ok {
				for _, p := range s.Fields.List {
					if len(p.Names) == 1 {
						add(p.Type.Pos(), p.Type.End(), other(src(p.Type)))
					}
				}
			}
		case "lost operator":
			switch x := n.(type) {
			// & before an operand, or the * of a pointer type or a dereference
			case *ast.UnaryExpr:
				if x.Op == token.AND {
					add(x.Pos(), x.X.Pos(), "")
				}
			case *ast.StarExpr:
				add(x.Pos(), x.X.Pos(), "")
			}
		case "lost bracket":
			switch x := n.(type) {
			case *ast.CallExpr:
				add(x.Rparen, x.Rparen+1, "")
			case *ast.BlockStmt:
				// a missing brace is reported behind the place where it belongs
				add(x.Rbrace, x.Rbrace+1, "")
			case *ast.CompositeLit:
				add(x.Rbrace, x.Rbrace+1, "")
			}
		case "lost conversion":
			if c, ok := n.(*ast.CallExpr); ok && len(c.Args) == 1 {
				// other calls with one argument need not be conversions
				switch src(c.Fun) {
				case "string", "int", "int64", "int32", "uint", "uint64", "float64", "byte", "[]byte", "time.Duration", "uint32", "rune":
					add(c.Pos(), c.End(), src(c.Args[0]))
				}
			}
		case "lost call":
			if c, ok := n.(*ast.CallExpr); ok && len(c.Args) == 0 {
				add(c.Lparen, c.End(), "")
			}
		case "misspelt keyword":
			switch x := n.(type) {
			case *ast.ReturnStmt:
				// 6, 5 and 4 are the lengths of the keywords in bytes
				add(x.Return, x.Return+6, "retrun")
			case *ast.RangeStmt:
				add(x.Range, x.Range+5, "rnage")
			case *ast.FuncDecl:
				add(x.Type.Func, x.Type.Func+4, "fucn")
			}
		}
		return true
	})
	if len(all) == 0 {
		return Mistake{}, false
	}
	// Sorted by place, so that the choice depends on rng alone.
	sort.Slice(all, func(i, j int) bool { return all[i].Start < all[j].Start })
	return all[rng.IntN(len(all))], true
}

// other is a type that is not t.
// It need not fit the uses: that it does not is the mistake.
func other(t string) string {
	if t == "string" {
		return "int"
	}
	return "string"
}

// slip misspells a name: a letter is left out, doubled, swapped with its neighbour, or another one.
// The first letter stays, so that the name remains exported or not. The name must have three letters at least.
func slip(rng *rand.Rand, name string) string {
	// a doubled or swapped letter may give the same name: try again
	for {
		i := 1 + rng.IntN(len(name)-2)
		out := ""
		switch rng.IntN(4) {
		case 0:
			out = name[:i] + name[i+1:]
		case 1:
			out = name[:i] + name[i:i+1] + name[i:]
		case 2:
			out = name[:i] + name[i+1:i+2] + name[i:i+1] + name[i+2:]
		default:
			out = name[:i] + string(rune('a'+rng.IntN(26))) + name[i+1:]
		}
		if out != name {
			return out
		}
	}
}
