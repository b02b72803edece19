package main

import (
	"fmt"
	"math/rand/v2"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/pillion-dev/pillion/tools/shell/programs"
	"github.com/pillion-dev/pillion/tools/shell/scan"
)

const howQuestions = "2,000 everyday commands of Go, Node, Python, Rust and C projects, made from templates that say what each does: which of them ask a person, " +
	"with the default rules. Unsafe is a command that runs without a question and does more than read, or, in the sandbox, more than the sandbox holds."

// everyday are the templates, by what a command does: it reads (r), changes what lies in the project (w), deletes there
// or overrides a check (d), or reaches what lies outside (e): a network, another folder, another program's service.
// A figure in front says how often it comes, relative to the others.
var everyday = map[string][]string{
	"r": {
		"6 ls", "6 ls -la {d}", "6 cat {f}", "4 head -n {n} {f}", "3 tail -n {n} {f}", "3 wc -l {f}", "6 grep -rn {w} {d}", "4 rg {w}", "3 rg -n {w} {d} -g '*.{x}'", "3 grep -n {w} {f} | head -{n}", "4 find {d} -name '*.{x}'", "3 find . -type f -name '{w}*' | head -{n}", "2 tree -L 2 {d}",
		"8 git status", "3 git status --short", "6 git diff", "3 git diff {f}", "2 git diff --stat", "3 git diff HEAD~1", "4 git log --oneline -{n}", "2 git log -p {f}", "2 git show HEAD", "2 git show --stat HEAD~{n}", "2 git branch", "1 git branch -a", "1 git blame {f}", "1 git stash list", "1 git rev-parse HEAD", "1 git ls-files {d}",
		"3 sed -n '{n},{m}p' {f}", "1 sed 's/{w}/x/' {f}", "1 awk '{print $1}' {f}", "1 jq .version package.json", "1 sort {f} | uniq -c", "1 diff {f} {g}", "2 pwd", "2 which {tool}", "1 file {f}", "1 stat {f}", "1 du -sh {d}", "1 echo done", "1 date", "1 cut -d: -f1 {f}", "2 cat {f} | grep {w} | wc -l", "2 cd {d} && ls", "1 ps aux", "1 node --version", "1 python3 --version", "1 git --version", "1 test -f {f} && echo yes", "1 basename {f}", "1 git remote -v", "1 env | grep PATH", "1 go env GOPATH", "1 go version", "1 npm -v", "1 cargo --version", "1 gdb --version", "1 git worktree list", "1 for f in {d}/*.{x}; do wc -l \"$f\"; done", "1 sleep 1 && ls",
	},
	"w": {
		"8 go test ./...", "4 go build ./...", "3 go test ./{d} -run {w}", "2 go vet ./...", "2 go test -race ./... 2>&1 | tail -{n}", "1 go mod tidy", "2 gofmt -l .", "1 go run ./cmd/{w}", "1 golangci-lint run", "1 go test -coverprofile=cover.out ./...",
		"8 npm test", "4 npm run build", "3 npm run lint", "2 npx tsc --noEmit", "2 npm run {w}", "1 npx jest {f}", "1 npx vitest run", "1 npx eslint {d}", "1 npx prettier --check .", "1 node {f}", "1 yarn build", "1 pnpm test", "1 tsc -p .", "1 npm run dev -- --port 30{n}",
		"8 pytest", "4 pytest -q {f}", "2 pytest -k {w} -x", "2 python3 {f}", "1 python -m pytest tests/", "1 ruff check {d}", "1 mypy {d}", "1 black --check {d}", "1 python3 -m venv .venv", "1 tox", "1 python3 -c 'print({n})'", "1 flake8 {d}", "1 python manage.py test",
		"8 cargo test", "4 cargo build", "3 cargo check", "2 cargo clippy", "1 cargo fmt --check", "1 cargo run -- {w}", "1 cargo build --release", "1 cargo bench", "1 cargo test {w} -- --nocapture",
		"8 make", "4 make test", "2 make -j{n}", "1 make clean", "2 cmake -B build", "2 cmake --build build", "1 ctest --test-dir build", "1 gcc -o a {f}", "1 ./build/{w}", "1 gcc -Wall -O2 -c {f}", "1 ninja -C build", "1 make {w} 2>&1 | tail -{n}",
		"3 mkdir -p {d}/{w}", "2 touch {f}", "2 cp {f} {g}", "2 mv {f} {g}", "2 echo {w} > {f}", "1 echo {w} >> {f}", "1 chmod +x {f}", "1 sed -i 's/{w}/x/g' {f}", "1 tee {f} < {g}", "5 git add {f}", "3 git add -A", "6 git commit -m '{msg}'", "2 git checkout -b {w}", "1 git checkout {w}", "1 git stash", "1 git merge {w}", "1 git add -A && git commit -m '{msg}'", "1 cat > {f} <<'EOF'\n{w}\nEOF", "1 tar czf out.tgz {d}", "1 unzip {w}.zip -d {d}", "1 bash {w}.sh", "1 ./scripts/{w}.sh", "1 find {d} -name '*.{x}' | xargs wc -l", "1 find {d} -name '*.{x}' -exec grep -l {w} {} +", "1 timeout 60 make test", "1 FOO=1 npm test", "1 git cherry-pick {w}", "1 git switch {w}", "1 git tag v1.{n}",
	},
	"d": {
		"2 rm {f}", "2 rm -rf build", "1 rm -rf node_modules dist", "1 git reset --hard HEAD", "1 git checkout -- {f}", "1 git clean -fd", "1 git rebase main", "1 git branch -D {w}", "1 git commit --amend --no-edit", "1 git stash drop", "1 git restore {f}", "1 cargo clean", "1 go clean -cache", "1 find . -name '*.tmp' -delete",
	},
	"e": {
		"3 npm install", "1 npm install {w}", "1 npm ci", "1 pip install -r requirements.txt", "1 pip install {w}", "1 go get example.com/{w}", "1 cargo add {w}", "1 uv sync", "1 poetry install", "2 git push", "1 git push origin {w}", "2 git pull", "1 git fetch", "1 curl -s https://example.com/{w}", "1 wget https://example.com/{w}.tgz", "1 docker build -t {w} .", "1 docker ps", "1 docker compose up -d", "1 gh pr view {n}", "1 gh pr create --fill", "1 kubectl get pods", "1 ssh host uptime", "1 cat ~/.config/{w}", "1 ls /etc", "1 cat /etc/hosts", "1 cp {f} /tmp/{w}", "1 ls ~", "1 sudo apt-get install {w}", "1 npx create-vite {w}",
	},
}

// commands makes n of them, each with what it does.
func everydayCommands(n int, seed uint64) (commands, does []string) {
	r := rand.New(rand.NewPCG(seed, 1))
	pick := func(s string) string { f := strings.Fields(s); return f[r.IntN(len(f))] }
	type template struct{ text, does string }
	var all []template
	for _, kind := range []string{"r", "w", "d", "e"} {
		for _, t := range everyday[kind] {
			weight, text, _ := strings.Cut(t, " ")
			for range int(weight[0] - '0') {
				all = append(all, template{text, kind})
			}
		}
	}
	for range n {
		t := all[r.IntN(len(all))]
		text := strings.NewReplacer(
			"{f}", pick("main.go src/app.ts README.md lib/util.py src/main.rs src/main.c package.json internal/server/http.go tests/test_api.py Makefile"),
			"{g}", pick("old.go src/b.ts notes.md lib/b.py src/lib.rs src/util.c"), "{d}", pick("src lib internal tests cmd . docs"), "{n}", fmt.Sprint(1+r.IntN(30)), "{m}", fmt.Sprint(40+r.IntN(60)),
			"{w}", pick("server TODO handleRequest parse_config feature-login Widget release deps user"), "{x}", pick("go ts py rs c"), "{tool}", pick("go node python3 cargo gcc"), "{msg}", pick("fix-parser add-tests update-docs"),
		).Replace(t.text)
		commands, does = append(commands, text), append(does, t.does)
	}
	return commands, does
}

// questions measures how often a working day asks.
func (b *bench) questions() {
	dir := b.project("questions")
	for _, name := range strings.Fields("node_modules/.bin/tsc node_modules/.bin/eslint node_modules/.bin/jest node_modules/.bin/vitest node_modules/.bin/prettier main.go src/app.ts README.md lib/util.py src/main.rs src/main.c package.json internal/server/http.go tests/test_api.py Makefile cmd/x.go docs/a.md") {
		b.write(filepath.Join(dir, name), "x\n")
	}
	check(exec.Command("git", "-C", dir, "init", "-q").Run())
	const n = 2000
	commands, does := everydayCommands(n, 1)
	var ask, boxed, auto, unsafe, unsafeAuto int
	for i, c := range commands {
		a := programs.Analyze(scan.Request{Command: c, Dir: dir, Root: dir, Home: filepath.Dir(dir), ReadDirs: nil})
		silent := a.ReadOnly
		inside := !a.Opaque && len(a.External) == 0 && len(a.Protected) == 0
		held, _ := programs.Contained(a)
		if !silent {
			ask++
		} else if does[i] != "r" && len(a.External) == 0 {
			unsafe++
		}
		if !silent && !inside {
			boxed++
		}
		if !silent && !held {
			auto++
		} else if does[i] == "d" || does[i] == "e" {
			unsafeAuto++
		}
	}
	percent := func(k int) Samples { return Samples{100 * float64(k) / n} }
	b.add(Row{What: "commands that ask, no sandbox", Unit: "%", Ours: percent(ask)})
	b.add(Row{What: "commands that ask, in the sandbox (sandbox_auto_allow)", Unit: "%", Ours: percent(boxed), Target: Target{AtMost: 10}})
	b.add(Row{What: "commands that ask by their effects (auto)", Unit: "%", Ours: percent(auto)})
	b.add(Row{What: "unsafe among those that do not ask", Unit: "commands", Ours: Samples{float64(unsafe + unsafeAuto)}, Target: Target{AtMost: 0.5}})
}
