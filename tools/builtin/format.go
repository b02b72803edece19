package builtin

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/pillion-dev/pillion/tools/files"
	"github.com/pillion-dev/pillion/tools/guard"
	"github.com/pillion-dev/pillion/tools/paths"
)

// FormatRule is a formatter of the configuration. In Command, "$FILE" is replaced by the path of a temporary file with the
// text, which the program rewrites. Without "$FILE" the program reads the text from stdin and writes the result to stdout.
// "$NAME" is replaced by the path of the file in the project.
type FormatRule struct {
	Name       string // the name of a row of formatTable makes the rule override that row
	Command    []string
	Extensions []string // with their dot
	Env        map[string]string
	Disabled   bool
	// Reason names the configuration file of the rule. Package guard decides with it whether the program may start; a draft
	// gets only rules whose programs may start.
	Reason guard.Reason `json:"-"`
}

// FormatOptions say which formatters run.
type FormatOptions struct {
	Root    string       // the worktree; files outside it are not formatted
	Rules   []FormatRule // tried first, in order
	Detect  bool         // then also try the first row of formatTable whose marker is in the project and whose program is installed
	Project bool         // programs in the project may run too (node_modules/.bin, vendor/bin): they are the project's code
	// Timeout is for one file; 0: ten seconds. The write of the file waits until the formatter has ended.
	Timeout time.Duration
}

// NewFormatter returns a Formatter. It looks for programs only when a file is formatted, so that a session without edits does not search the
// PATH.
func NewFormatter(o FormatOptions) Formatter {
	o.Timeout = cmp.Or(o.Timeout, 10*time.Second)
	return &formatter{o}
}

// formatter is the Formatter of configured and detected programs. It caches nothing, because the person may install a
// missing program between two edits.
type formatter struct{ o FormatOptions }

// formatRow is a formatter that Pillion knows.
type formatRow struct {
	name    string
	exts    string   // separated by blanks, without dots
	command []string // as FormatRule.Command; "$EDITION" is replaced by the edition in Cargo.toml
	// markers are files; one of them must be in the file's folder or above. "name:text" is a file that contains the text. Without
	// markers the formatter is used wherever its program is installed.
	markers []string
	exit1   bool         // exit status 1 is not a failure: the program formatted the text, but has more findings
	reason  guard.Reason // names the configuration file of the command
	byName  bool         // never detected; the configuration must name it
}

// Format keeps CRLF if all lines of the text end with it: most formatters write LF, which would change every line of the diff.
func (f *formatter) Format(ctx context.Context, path, text string) (string, string, bool, error) {
	// The formatters of a project format only its own files.
	if f.o.Root != "" && !paths.Within(f.o.Root, path) {
		return text, "", false, nil
	}
	row, env, dir, ok := f.choose(path)
	if !ok {
		return text, "", false, nil
	}
	ctx, cancel := context.WithTimeout(ctx, f.o.Timeout)
	defer cancel()
	out, err := f.run(ctx, row, env, dir, path, text)
	if err != nil {
		if errors.Is(ctx.Err(), context.DeadlineExceeded) {
			err = fmt.Errorf("it took longer than %v", f.o.Timeout)
		}
		return text, row.name, true, err
	}
	// A formatter that reads from a pipe does not see which line ending the file has.
	if files.EOLOf(text) == files.CRLF && files.EOLOf(out) == files.LF {
		out = strings.ReplaceAll(out, "\n", "\r\n")
	}
	return out, row.name, true, nil
}

// choose finds the formatter of a path: a configured one, else a row of formatTable. dir is the working directory of the program: for a row of
// the table the folder of the marker, where the formatter's own settings are.
func (f *formatter) choose(path string) (row formatRow, env map[string]string, dir string, ok bool) {
	// Only the extension decides, as in the configuration. A file without one, such as Makefile, has no formatter.
	ext := strings.TrimPrefix(filepath.Ext(path), ".")
	byName := map[string]FormatRule{}
	for _, r := range f.o.Rules {
		// A rule that only names a row ("prettier": {}) turns that row on, with the row's command and extensions.
		known := tableRow(r.Name)
		if len(r.Command) == 0 && known != nil {
			r.Command = known.command
		}
		byName[r.Name] = r
		fits := slices.Contains(r.Extensions, "."+ext) || len(r.Extensions) == 0 && known != nil && known.has(ext)
		if r.Disabled || !fits || len(r.Command) == 0 {
			continue
		}
		row := formatRow{name: r.Name, command: r.Command, reason: r.Reason}
		if known != nil {
			row.exit1 = known.exit1
		}
		return row, r.Env, f.cwd(path), true
	}
	if !f.o.Detect {
		return formatRow{}, nil, "", false
	}
	// A rule of the configuration, even a disabled one, replaces the row with its name.
	for _, row := range formatTable {
		if _, configured := byName[row.name]; configured || row.byName || !row.has(ext) {
			continue
		}
		dir, ok := f.markerFolder(path, row.markers)
		if !ok {
			continue
		}
		prog, ok := f.program(row.command[0], filepath.Dir(path))
		if !ok {
			continue
		}
		row.command = append([]string{prog}, row.command[1:]...)
		return row, nil, dir, true
	}
	return formatRow{}, nil, "", false
}

// has reports whether the row is for files with an extension (without its dot).
func (r *formatRow) has(ext string) bool {
	return ext != "" && slices.Contains(strings.Fields(r.exts), ext)
}

// tableRow is the built-in row of that name, nil when there is none.
func tableRow(name string) *formatRow {
	for i := range formatTable {
		if formatTable[i].name == name {
			return &formatTable[i]
		}
	}
	return nil
}

// cwd is the working directory of a configured formatter: the root of the worktree, because its own settings are usually there.
func (f *formatter) cwd(path string) string {
	if f.o.Root != "" {
		return f.o.Root
	}
	return filepath.Dir(path)
}

// markerFolder finds the nearest folder with one of the markers, from the file's folder up to the root of the worktree. A marker above the
// root would belong to another project. For "name:text" it reads the file: some programs are configured in package.json or pyproject.toml.
func (f *formatter) markerFolder(path string, markers []string) (dir string, ok bool) {
	if len(markers) == 0 {
		return filepath.Dir(path), true
	}
	for d := filepath.Dir(path); ; d = filepath.Dir(d) {
		for _, m := range markers {
			name, needle, look := strings.Cut(m, ":")
			p := filepath.Join(d, name)
			// A configuration file is small. Reading a file over 1 MiB for every edit would be slow.
			if fi, err := os.Stat(p); err != nil || !fi.Mode().IsRegular() || fi.Size() > 1<<20 {
				continue
			}
			if look {
				if b, err := os.ReadFile(p); err != nil || !bytes.Contains(b, []byte(needle)) {
					continue
				}
			}
			return d, true
		}
		if d == f.o.Root || d == filepath.Dir(d) {
			return "", false
		}
	}
}

// program finds a formatter's program. A program in the project is the project's code, so it is used only with
// FormatOptions.Project; the nearest folder is searched first, as npm and composer do.
func (f *formatter) program(name, dir string) (string, bool) {
	if f.o.Project {
		for d := dir; ; d = filepath.Dir(d) {
			for _, bin := range [...]string{"node_modules/.bin", "vendor/bin"} {
				if p, err := exec.LookPath(filepath.Join(d, bin, name)); err == nil {
					return p, true
				}
			}
			if d == f.o.Root || d == filepath.Dir(d) {
				break
			}
		}
	}
	// With a relative folder on the PATH ("." or "bin") a program of an untrusted project could be found here, so the result must be absolute.
	p, err := exec.LookPath(name)
	if err != nil || !filepath.IsAbs(p) || f.o.Root != "" && paths.Within(f.o.Root, p) && !f.o.Project {
		return "", false
	}
	return p, true
}

// run gives the text to the program on stdin or in a temporary copy beside the file. It never uses the file itself, because
// the change is not approved yet. An empty result for a text that was not empty is an error: some formatters
// print nothing when they fail and still exit with 0.
func (f *formatter) run(ctx context.Context, row formatRow, env map[string]string, dir, path, text string) (string, error) {
	command := slices.Clone(row.command)
	temp := ""
	for i, a := range command {
		if strings.Contains(a, "$FILE") {
			if temp == "" {
				var err error
				if temp, err = formatCopy(path, text); err != nil {
					return "", err
				}
				defer os.Remove(temp)
			}
			a = strings.ReplaceAll(a, "$FILE", temp)
		}
		a = strings.ReplaceAll(a, "$NAME", path)
		if strings.Contains(a, "$EDITION") {
			a = strings.ReplaceAll(a, "$EDITION", edition(dir))
		}
		command[i] = a
	}
	// Whether the program may start depends on the file that configures it; see package guard.
	why := row.reason
	why.Who = guard.Formatter
	cmd := guard.CommandFor(ctx, why, command...)
	cmd.Dir = dir
	if _, err := os.Stat(dir); err != nil { // the change creates this folder
		cmd.Dir = f.o.Root
	}
	for k, v := range env {
		cmd.Env = append(cmd.Env, k+"="+v)
	}
	ownGroup(cmd)
	// A formatter's grandchild may keep the pipe open after the formatter was killed.
	cmd.WaitDelay = time.Second
	var out, errs limited
	out.max, errs.max = files.MaxText, 8<<10
	cmd.Stdout, cmd.Stderr = &out, &errs
	if temp == "" {
		cmd.Stdin = strings.NewReader(text)
	}
	err := guard.Start(cmd)
	if err == nil {
		err = cmd.Wait()
	}
	// Linters such as rubocop exit with 1 if they find problems that they cannot correct; they have formatted the text nevertheless.
	if x := (*exec.ExitError)(nil); row.exit1 && errors.As(err, &x) && x.ExitCode() == 1 {
		err = nil
	}
	switch {
	case errors.Is(err, exec.ErrNotFound):
		return "", fmt.Errorf("%s is not installed; install it, or remove the formatter from the configuration", command[0])
	case err != nil:
		return "", fmt.Errorf("%w: %s", err, strings.TrimSpace(errs.String()))
	case out.over:
		return "", errors.New("its output is too long")
	}
	if temp == "" {
		if out.Len() == 0 && strings.TrimSpace(text) != "" {
			return "", errors.New("it printed nothing")
		}
		return out.String(), nil
	}
	b, err := os.ReadFile(temp)
	if err != nil {
		return "", err
	}
	if len(b) == 0 && strings.TrimSpace(text) != "" {
		return "", errors.New("it emptied the file")
	}
	return string(b), nil
}

// formatCopy writes the text to a hidden file in the folder of the real file, where a formatter finds its settings. If the change
// creates that folder, the copy is in the nearest folder above that exists. The copy's name ends with the real name, because formatters
// choose the language by it. The caller removes the copy.
func formatCopy(path, text string) (string, error) {
	dir := filepath.Dir(path)
	for {
		f, err := os.CreateTemp(dir, ".pillion-fmt-*-"+filepath.Base(path))
		if errors.Is(err, os.ErrNotExist) && dir != filepath.Dir(dir) {
			dir = filepath.Dir(dir)
			continue
		}
		if err != nil {
			return "", err
		}
		_, err = io.WriteString(f, text)
		if e := f.Close(); err == nil {
			err = e
		}
		if err != nil {
			os.Remove(f.Name())
			return "", err
		}
		return f.Name(), nil
	}
}

// edition is the Rust edition that Cargo.toml names, else 2021. Without --edition, rustfmt assumes 2015 and fails on async functions.
func edition(dir string) string {
	b, _ := os.ReadFile(filepath.Join(dir, "Cargo.toml"))
	for l := range strings.Lines(string(b)) {
		k, v, ok := strings.Cut(l, "=")
		if ok && strings.TrimSpace(k) == "edition" {
			return strings.Trim(strings.TrimSpace(v), `"'`)
		}
	}
	return "2021"
}

// limited keeps the first max bytes and discards the rest, so that a formatter that prints without end neither fills the memory nor
// blocks because its pipe is full.
type limited struct {
	bytes.Buffer
	max  int
	over bool
}

// Write never fails: os/exec would report the error as an error of the command.
func (l *limited) Write(p []byte) (int, error) {
	if room := l.max - l.Len(); len(p) > room {
		l.over = true
		l.Buffer.Write(p[:max(room, 0)])
		return len(p), nil
	}
	return l.Buffer.Write(p)
}

const (
	// Extensions that several formatters share.
	webExts  = "js jsx mjs cjs ts tsx mts cts css scss less html vue json jsonc yaml yml md mdx graphql gql"
	rubyExts = "rb rake gemspec ru"
)

// formatTable lists the known formatters. The first row that has the extension, a marker in the project and an installed program is used,
// so the order decides between formatters of one language.
var formatTable = [...]formatRow{
	{name: "gofumpt", exts: "go", command: []string{"gofumpt"}, byName: true},
	{name: "gofmt", exts: "go", command: []string{"gofmt"}, markers: []string{"go.mod", "go.work"}},
	{name: "biome", exts: "js jsx mjs cjs ts tsx mts cts json jsonc css graphql gql html vue svelte astro", command: []string{"biome", "format", "--stdin-file-path=$NAME"}, markers: []string{"biome.json", "biome.jsonc"}},
	{name: "oxfmt", exts: webExts, command: []string{"oxfmt", "--stdin-filepath", "$NAME"}, markers: []string{".oxfmtrc.json", ".oxfmtrc.jsonc", `package.json:"oxfmt"`}},
	{name: "prettier", exts: webExts, command: []string{"prettier", "--stdin-filepath", "$NAME"}, markers: []string{
		".prettierrc", ".prettierrc.json", ".prettierrc.yaml", ".prettierrc.yml", ".prettierrc.toml", ".prettierrc.js", ".prettierrc.cjs", ".prettierrc.mjs",
		"prettier.config.js", "prettier.config.cjs", "prettier.config.mjs", "prettier.config.ts", `package.json:"prettier"`}},
	{name: "ruff", exts: "py pyi", command: []string{"ruff", "format", "--stdin-filename", "$NAME", "-"}, markers: []string{"ruff.toml", ".ruff.toml", "pyproject.toml:[tool.ruff", "requirements.txt:ruff", "pyproject.toml:ruff"}},
	{name: "black", exts: "py pyi", command: []string{"black", "-q", "--stdin-filename", "$NAME", "-"}, markers: []string{"pyproject.toml:[tool.black"}},
	{name: "uv", exts: "py pyi", command: []string{"uv", "format", "--", "$FILE"}, byName: true},
	{name: "rustfmt", exts: "rs", command: []string{"rustfmt", "--edition", "$EDITION"}, markers: []string{"Cargo.toml"}},
	{name: "clang-format", exts: "c cc cpp cxx h hh hpp hxx m mm ino", command: []string{"clang-format", "--assume-filename=$NAME"}, markers: []string{".clang-format", "_clang-format"}},
	{name: "shfmt", exts: "sh bash", command: []string{"shfmt", "-filename", "$NAME"}},
	{name: "zig", exts: "zig zon", command: []string{"zig", "fmt", "--stdin"}, markers: []string{"build.zig"}},
	{name: "mix", exts: "ex exs eex heex leex", command: []string{"mix", "format", "--stdin-filename", "$NAME", "-"}, markers: []string{"mix.exs"}},
	{name: "dart", exts: "dart", command: []string{"dart", "format"}, markers: []string{"pubspec.yaml"}},
	{name: "terraform", exts: "tf tfvars", command: []string{"terraform", "fmt", "-"}},
	{name: "ktlint", exts: "kt kts", command: []string{"ktlint", "-F", "$FILE"}, exit1: true},
	{name: "rubocop", exts: rubyExts, command: []string{"rubocop", "--autocorrect", "$FILE"}, markers: []string{".rubocop.yml"}, exit1: true},
	{name: "standardrb", exts: rubyExts, command: []string{"standardrb", "--fix", "$FILE"}, markers: []string{".standard.yml"}, exit1: true},
	{name: "htmlbeautifier", exts: "erb", command: []string{"htmlbeautifier"}},
	{name: "gleam", exts: "gleam", command: []string{"gleam", "format", "--stdin"}, markers: []string{"gleam.toml"}},
	{name: "ocamlformat", exts: "ml mli", command: []string{"ocamlformat", "--name=$NAME", "-"}, markers: []string{".ocamlformat"}},
	{name: "ormolu", exts: "hs", command: []string{"ormolu", "--stdin-input-file", "$NAME"}},
	{name: "cljfmt", exts: "clj cljs cljc edn", command: []string{"cljfmt", "fix", "$FILE"}},
	{name: "nixfmt", exts: "nix", command: []string{"nixfmt", "$FILE"}},
	{name: "air", exts: "R r", command: []string{"air", "format", "$FILE"}, markers: []string{"air.toml", ".air.toml"}},
	{name: "latexindent", exts: "tex", command: []string{"latexindent", "-w", "-s", "$FILE"}},
	{name: "pint", exts: "php", command: []string{"pint", "$FILE"}, markers: []string{"pint.json", `composer.json:"laravel/pint"`}},
	{name: "dfmt", exts: "d", command: []string{"dfmt", "-i", "$FILE"}},
}
