package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"go/parser"
	"go/scanner"
	"go/token"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/pillion-dev/pillion/tools/gofix/mutate"
)

const howMend = "Real Go modules, fetched by version, get seeded mistakes of the kinds that people and models make, each in a file of its own and each an error for the compiler. " +
	"`pillion run --approve all \"fix all errors\"` mends them with the built-in model: no key, no network. The truth is `go build` and `go vet` with tests, before and after. " +
	"*Mended*: with its file as the run left it, and every other mistake that is left taken back, the module compiles; so a mistake that another error hid from the compiler is judged as well. *As it was*: the file is what it was before the mistake, byte for byte; a fix may be another one. *Builds again*: the whole module. Errors before and after are the compiler's. A syntax error hides the other errors of its package and of what imports it, so where a file does not parse they are counted with that file as it was before its mistake, and its syntax errors are added. A line with several errors counts once. " +
	"What was changed in each module stays in `.cache/mend` for reading."

// mendModules are modules that nobody here wrote, of one author each as far as possible.
var mendModules = []string{
	"github.com/google/uuid@v1.6.0", "github.com/gorilla/mux@v1.8.1", "github.com/go-chi/chi/v5@v5.1.0", "github.com/spf13/pflag@v1.0.6",
	"github.com/spf13/cobra@v1.8.1", "github.com/sirupsen/logrus@v1.9.3", "github.com/BurntSushi/toml@v1.4.0", "github.com/russross/blackfriday/v2@v2.1.0",
	"github.com/yuin/goldmark@v1.7.8", "github.com/hashicorp/golang-lru/v2@v2.0.7", "github.com/shopspring/decimal@v1.4.0", "github.com/tidwall/gjson@v1.18.0",
	"github.com/julienschmidt/httprouter@v1.3.0", "github.com/urfave/cli/v2@v2.27.5", "github.com/alecthomas/participle/v2@v2.1.1", "github.com/mitchellh/mapstructure@v1.5.0",
	"github.com/gorilla/websocket@v1.5.3", "github.com/robfig/cron/v3@v3.0.1", "github.com/fatih/color@v1.18.0", "github.com/rs/zerolog@v1.33.0",
	"github.com/google/btree@v1.1.3", "github.com/golang-jwt/jwt/v5@v5.2.1", "github.com/oklog/ulid/v2@v2.1.0",
}

// mistakesEach is how many mistakes a module gets.
const mistakesEach = 6

// mendLimit is how long one run of the built-in model may take. It needs about ten requests of the server for each error.
const mendLimit = 10 * time.Minute

// seeded is one mistake in a module. While it was the only one, the module did not compile.
type seeded struct {
	kind, file string
	old        string // the file's text before it
}

// leftMistakes judges each mistake by itself: it is mended when the module compiles with its file, and those of the other mended ones, as the
// run has left them, and with all other mistakes taken back. What the run changed in files without a mistake stays for the first attempt and is
// taken back for the second, because it may belong to another mistake. The fix of one mistake may lie in the file of another that seems to be
// left: so two are tried together at the end.
// Nothing follows from errors that are not seen: those of other mistakes hide them. The result has an error of each mistake that is left, by its
// index. dir is the module after the run, changed has the text before the run of each file that the run changed.
func leftMistakes(ctx context.Context, dir string, mistakes []seeded, changed map[string]string, after []finding, check truth) (map[int]finding, error) {
	left := map[int]finding{}
	if len(after) == 0 {
		return left, nil
	}
	final := map[string]string{}
	for _, s := range mistakes {
		final[s.file] = ""
	}
	for name := range changed {
		final[name] = ""
	}
	for name := range final {
		b, err := os.ReadFile(filepath.Join(dir, filepath.FromSlash(name)))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		final[name] = string(b)
	}
	apart := dir + ".apart"
	if err := os.CopyFS(apart, os.DirFS(dir)); err != nil {
		return nil, err
	}
	defer os.RemoveAll(apart)
	// compiles checks the module with the files of the mistakes in stay, and with those without a mistake if others is true, as the run has left them.
	compiles := func(stay map[int]bool, others bool) ([]finding, error) {
		texts := map[string]string{}
		for name, before := range changed {
			texts[name] = before
			if others {
				texts[name] = final[name]
			}
		}
		for i, s := range mistakes {
			texts[s.file] = s.old
			if stay[i] {
				texts[s.file] = final[s.file]
			}
		}
		for name, text := range texts {
			if err := os.WriteFile(filepath.Join(apart, filepath.FromSlash(name)), []byte(text), 0o600); err != nil {
				return nil, err
			}
		}
		return check(ctx, apart, "")
	}
	mended := map[int]bool{}
	// try reports whether the module compiles with these mistakes' files, and those of all that were found to be mended, as the run has left them.
	try := func(some []int, others bool) ([]finding, error) {
		stay := maps.Clone(mended)
		for _, i := range some {
			stay[i] = true
		}
		errs, err := compiles(stay, others)
		if err == nil && len(errs) == 0 {
			mended = stay
		}
		return errs, err
	}
	// Halves of halves: where one mistake of many is left, most are judged together.
	var judge func(some []int, known bool) error
	judge = func(some []int, known bool) error {
		if !known {
			errs, err := try(some, true)
			if err == nil && len(errs) > 0 && len(some) == 1 {
				left[some[0]] = errs[0]
				// What a fix has spoilt in another file may be another mistake's fix.
				_, err = try(some, false)
			}
			if err != nil || mended[some[0]] || len(some) == 1 {
				return err
			}
		}
		half := (len(some) + 1) / 2
		return errors.Join(judge(some[:half], false), judge(some[half:], false))
	}
	every := make([]int, len(mistakes))
	for i := range every {
		every[i] = i
	}
	if err := judge(every, len(every) > 1); err != nil {
		return nil, err
	}
	for i := range mistakes {
		for j := i; j < len(mistakes) && !mended[i]; j++ {
			if !mended[j] {
				if _, err := try([]int{i, j}, true); err != nil {
					return nil, err
				}
			}
		}
	}
	maps.DeleteFunc(left, func(i int, _ finding) bool { return mended[i] })
	return left, nil
}

// countErrors is how many errors a module has. The compiler shows only the syntax errors of a package that has one, and nothing of what imports
// it; so the other errors are those that it shows with the unparsable files as they were before their mistake. errs are those that it shows now.
func countErrors(ctx context.Context, dir string, mistakes []seeded, errs []finding, check truth) (n int, err error) {
	var put []func() error
	defer func() {
		for _, f := range put {
			err = errors.Join(err, f())
		}
	}()
	for _, s := range mistakes {
		path := filepath.Join(dir, filepath.FromSlash(s.file))
		now, err := os.ReadFile(path)
		if err != nil {
			return 0, err
		}
		var list scanner.ErrorList
		if _, err := parser.ParseFile(token.NewFileSet(), path, now, parser.SkipObjectResolution); !errors.As(err, &list) {
			continue
		}
		n += len(list)
		if err := os.WriteFile(path, []byte(s.old), 0o600); err != nil {
			return 0, err
		}
		put = append(put, func() error { return os.WriteFile(path, now, 0o600) })
	}
	if len(put) > 0 {
		if errs, err = check(ctx, dir, ""); err != nil {
			return 0, err
		}
	}
	return n + len(introduced(nil, errs)), nil // vet repeats some of the build's errors: each line counts once
}

// goSources are a module's Go files, with their texts by slash-separated path; those of modules inside of it and those that the go command
// ignores are left out.
func goSources(dir string) (map[string]string, error) {
	texts := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() && path != dir {
			if name := d.Name(); name == "testdata" || name == "vendor" || strings.HasPrefix(name, "_") || strings.HasPrefix(name, ".") {
				return filepath.SkipDir
			}
			if _, err := os.Stat(filepath.Join(path, "go.mod")); err == nil {
				return filepath.SkipDir // another module: its build is not looked at
			}
		}
		if err != nil || !d.Type().IsRegular() || !strings.HasSuffix(path, ".go") {
			return err
		}
		b, err := os.ReadFile(path)
		rel, _ := filepath.Rel(dir, path)
		texts[filepath.ToSlash(rel)] = string(b)
		return err
	})
	return texts, err
}

// seedMistakes makes n mistakes in a module, each in another file; what does not break the build is taken back. check is the compiler.
func seedMistakes(ctx context.Context, dir string, n int, seed uint64, check truth) ([]seeded, error) {
	texts, err := goSources(dir)
	if err != nil {
		return nil, err
	}
	files := slices.Sorted(maps.Keys(texts))
	r := rand.New(rand.NewPCG(seed, uint64(len(files))))
	r.Shuffle(len(files), func(i, j int) { files[i], files[j] = files[j], files[i] })
	kinds := slices.Clone(mutate.Kinds)
	r.Shuffle(len(kinds), func(i, j int) { kinds[i], kinds[j] = kinds[j], kinds[i] })
	write := func(name, text string) error {
		return os.WriteFile(filepath.Join(dir, filepath.FromSlash(name)), []byte(text), 0o600)
	}
	wrong := map[string]string{}
	var out []seeded
	for i := 0; i < 6*n && len(out) < n && len(files) > 0; i++ {
		name, kind := files[i%len(files)], kinds[i%len(kinds)]
		if wrong[name] != "" {
			continue
		}
		m, ok := mutate.Find(r, kind, texts[name])
		if !ok {
			continue
		}
		text := m.Apply(texts[name])
		if err := write(name, text); err != nil {
			return nil, err
		}
		broke, err := check(ctx, dir, "")
		if err = errors.Join(err, write(name, texts[name])); err != nil {
			return nil, err
		}
		if len(broke) > 0 {
			wrong[name] = text
			out = append(out, seeded{kind, name, texts[name]})
		}
	}
	for name, text := range wrong {
		if err := write(name, text); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// mended is what became of a module.
type mended struct {
	mistakes, fixed, same int
	before, after         int // errors of the compiler; see countErrors
	steps                 float64
	lines                 []string
}

// mendModule seeds mistakes into a module, lets the binary mend them and asks the compiler.
func mendModule(ctx context.Context, bin, version, dir, keep string) (mended, error) {
	var out mended
	if err := goModule(version, "", nil)(ctx, dir); err != nil {
		return out, err
	}
	// The requirements are downloaded now: the run below has no network to need.
	if _, err := compilerOutput(ctx, dir, "go", "mod", "download"); err != nil {
		return out, err
	}
	clean, err := goTruth(ctx, dir, "")
	if err != nil || len(clean) > 0 {
		return out, errors.Join(err, fmt.Errorf("it has %d errors of its own", len(clean)))
	}
	mistakes, err := seedMistakes(ctx, dir, mistakesEach, 1, goTruth)
	if err != nil {
		return out, err
	}
	if out.mistakes = len(mistakes); out.mistakes == 0 {
		return out, errors.New("no mistake breaks its build")
	}
	wrong, err := goSources(dir)
	if err != nil {
		return out, err
	}
	before, err := goTruth(ctx, dir, "")
	if err != nil {
		return out, err
	}
	if out.before, err = countErrors(ctx, dir, mistakes, before, goTruth); err != nil {
		return out, err
	}
	git := func(args ...string) ([]byte, error) {
		cmd := exec.CommandContext(ctx, "git", append([]string{"-C", dir, "-c", "user.name=bench", "-c", "user.email=bench@example.org"}, args...)...)
		return cmd.CombinedOutput()
	}
	for _, args := range [][]string{{"init", "-q"}, {"add", "-A"}, {"commit", "-q", "-m", "with mistakes"}} {
		if b, err := git(args...); err != nil {
			return out, fmt.Errorf("%w: %s", err, b)
		}
	}
	home := dir + ".home"
	if err := os.MkdirAll(home, 0o700); err != nil {
		return out, err
	}
	limited, cancel := context.WithTimeout(ctx, mendLimit)
	defer cancel()
	cmd := exec.CommandContext(limited, bin, "run", "--cwd", dir, "--approve", "all", "--model", "builtin/quickfix", "fix all errors")
	cmd.Env = append(os.Environ(), "XDG_CONFIG_HOME="+home, "XDG_STATE_HOME="+home, "XDG_DATA_HOME="+home, "GOFLAGS=-mod=mod", "GOWORK=off")
	began := time.Now()
	answer, err := cmd.CombinedOutput()
	out.steps = time.Since(began).Seconds()
	if limited.Err() != nil {
		out.lines = append(out.lines, fmt.Sprintf("%s: did not end within %s", version, mendLimit))
	} else if exit := new(exec.ExitError); err != nil && !errors.As(err, &exit) {
		return out, err
	}
	after, err := goTruth(ctx, dir, "")
	if err != nil {
		return out, err
	}
	if out.after, err = countErrors(ctx, dir, mistakes, after, goTruth); err != nil {
		return out, err
	}
	now, err := goSources(dir)
	if err != nil {
		return out, err
	}
	maps.DeleteFunc(wrong, func(name, text string) bool { return now[name] == text })
	left, err := leftMistakes(ctx, dir, mistakes, wrong, after, goTruth)
	if err != nil {
		return out, err
	}
	for i, s := range mistakes {
		if e, ok := left[i]; ok {
			out.lines = append(out.lines, fmt.Sprintf("left: %s %s: %s: %v", version, s.file, s.kind, e))
		}
	}
	out.fixed = len(mistakes) - len(left)
	for _, s := range mistakes {
		if b, err := os.ReadFile(filepath.Join(dir, filepath.FromSlash(s.file))); err == nil && string(b) == s.old {
			out.same++
		}
	}
	if out.after > out.before {
		out.lines = append(out.lines, fmt.Sprintf("WORSE: %s: %d errors became %d", version, out.before, out.after))
	}
	diff, err := git("diff")
	if err != nil {
		return out, err
	}
	if err := os.MkdirAll(keep, 0o755); err != nil {
		return out, err
	}
	name := strings.NewReplacer("/", "_", "@", "_").Replace(version)
	var page bytes.Buffer
	fmt.Fprintf(&page, "%s\n%d of %d mistakes mended, %d errors before, %d after\n%s\n\n%s\n\n%s", version, out.fixed, out.mistakes, out.before, out.after, strings.Join(out.lines, "\n"), answer, diff)
	return out, os.WriteFile(filepath.Join(keep, name+".diff"), page.Bytes(), 0o644)
}

// mend measures the built-in model on real modules.
func (b *bench) mend() {
	var sum mended
	modules, builds, worse := 0, 0, 0
	var took Samples
	var rows strings.Builder
	rows.WriteString("| module | mistakes | mended | as it was | errors before | after |\n|---|---:|---:|---:|---:|---:|\n")
	list := mendModules[:min(len(mendModules), b.rounds(len(mendModules)))]
	if strings.Contains(b.chosen, "@") {
		list = strings.Split(b.chosen, ",") // modules by version, also those that are not in the list: figures for a list that was used to mend the mender prove little
	}
	for i, version := range list {
		if !strings.Contains(b.chosen, version) && !strings.Contains(version, b.chosen) {
			continue
		}
		m, err := mendModule(b.ctx, b.bin, version, filepath.Join(b.dir, fmt.Sprint("mend", i)), filepath.Join(cacheDir(), "mend"))
		for _, line := range m.lines {
			fmt.Fprintln(os.Stderr, "  "+line)
		}
		if err != nil {
			fmt.Fprintf(os.Stderr, "  %s is left out: %v\n", version, err)
			continue
		}
		fmt.Fprintf(os.Stderr, "  %s: %d of %d mended, %d → %d errors, %.0f s\n", version, m.fixed, m.mistakes, m.before, m.after, m.steps)
		fmt.Fprintf(&rows, "| %s | %d | %d | %d | %d | %d |\n", version, m.mistakes, m.fixed, m.same, m.before, m.after)
		modules++
		if m.after == 0 {
			builds++
		}
		if m.after > m.before {
			worse++
		}
		took = append(took, m.steps)
		sum.mistakes, sum.fixed, sum.same = sum.mistakes+m.mistakes, sum.fixed+m.fixed, sum.same+m.same
	}
	if modules == 0 {
		failf("no module could be had")
	}
	b.table = rows.String()
	b.add(Row{What: fmt.Sprintf("mistakes mended, of %d", sum.mistakes), Unit: "%", Ours: Samples{100 * float64(sum.fixed) / float64(sum.mistakes)}, Target: Target{AtLeast: 60}, Note: fmt.Sprintf("%d; %d files as they were", sum.fixed, sum.same)})
	b.add(Row{What: fmt.Sprintf("modules that build again, of %d", modules), Unit: "%", Ours: Samples{100 * float64(builds) / float64(modules)}, Target: Target{AtLeast: 40}, Note: fmt.Sprint(builds)})
	b.add(Row{What: "modules with more errors than before (promised: none)", Ours: Samples{float64(worse)}})
	b.add(Row{What: "a run, language server just started", Unit: "s", Ours: took})
}
