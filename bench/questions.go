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

const afterQuestions = "Before there was containment and a sandbox that asks less, 97 % of a public list of commands asked, and 62 % of the set of that time. The set has grown " +
	"from 230 templates to 500 since, with pipes, two commands at once, package managers' second rank and code given as text. Of what asks in " +
	"the sandbox most names a place outside the project (`/tmp/x`, `~/.config/x`, `ls ..`); the rest sources a file " +
	"(`. .venv/bin/activate`) or takes its words from a file (`xargs -a`). Code as text (`python -c`, `node -e`) runs there, unless its text deletes, " +
	"starts programs, connects or names places outside. By effects ask besides what deletes, forces, or reaches another machine: installs, `git push`, " +
	"make with a target that deploys, `docker`, `curl`."

// everyday are the templates, by what a command does: it reads (r), changes what is in the project (w), deletes there
// or overrides a check (d), or reaches what is outside (e): a network, another folder, another program's service.
// A figure in front says how often it comes, relative to the others.
var everyday = map[string][]string{
	"r": {
		"6 ls", "6 ls -la {d}", "6 cat {f}", "4 head -n {n} {f}", "3 tail -n {n} {f}", "3 wc -l {f}", "6 grep -rn {w} {d}", "4 rg {w}", "3 rg -n {w} {d} -g '*.{x}'", "3 grep -n {w} {f} | head -{n}", "4 find {d} -name '*.{x}'", "3 find . -type f -name '{w}*' | head -{n}", "2 tree -L 2 {d}",
		"8 git status", "3 git status --short", "6 git diff", "3 git diff {f}", "2 git diff --stat", "3 git diff HEAD~1", "4 git log --oneline -{n}", "2 git log -p {f}", "2 git show HEAD", "2 git show --stat HEAD~{n}", "2 git branch", "1 git branch -a", "1 git blame {f}", "1 git stash list", "1 git rev-parse HEAD", "1 git ls-files {d}",
		"3 sed -n '{n},{m}p' {f}", "1 sed 's/{w}/x/' {f}", "1 awk '{print $1}' {f}", "1 jq .version package.json", "1 sort {f} | uniq -c", "1 diff {f} {g}", "2 pwd", "2 which {tool}", "1 file {f}", "1 stat {f}", "1 du -sh {d}", "1 echo done", "1 date", "1 cut -d: -f1 {f}", "2 cat {f} | grep {w} | wc -l", "2 cd {d} && ls", "1 ps aux", "1 node --version", "1 python3 --version", "1 git --version", "1 test -f {f} && echo yes", "1 basename {f}", "1 git remote -v", "1 env | grep PATH", "1 go env GOPATH", "1 go version", "1 npm -v", "1 cargo --version", "1 gdb --version", "1 git worktree list", "1 for f in {d}/*.{x}; do wc -l \"$f\"; done", "1 sleep 1 && ls",
		"3 go list ./...", "2 go doc net/http.Client", "2 go env", "1 go list -m all", "1 gopls version", "2 npm ls", "1 npm ls --depth=0", "1 npm run", "1 npm config get registry", "2 pip list", "1 pip freeze", "1 pip show {w}", "1 cargo tree", "1 cargo metadata --format-version 1", "1 rustc --version", "1 cmake --version", "1 gcc --version", "1 nm -C {f}", "1 objdump -d {f} | head -{m}", "1 ldd {f}", "1 readelf -h {f}", "1 pkg-config --cflags zlib", "2 cat {f} {g}", "2 grep -rn --include='*.{x}' {w} . | head -{n}", "2 grep -rl {w} {d} | wc -l", "1 grep -c {w} {f}", "1 grep -E 'func|def|class' {f}", "2 find . -name '*.{x}' -not -path './node_modules/*'", "1 find {d} -type f | wc -l", "1 find . -newer {f} -name '*.{x}'", "2 ls -1 {d} | head", "1 ls -lt | head -{n}", "2 wc -l {d}/*.{x}", "1 head -c 200 {f}", "1 tail -f {f} | head -1", "1 nl -ba {f} | sed -n '{n},{m}p'", "1 cat -n {f} | head -{m}", "1 sed -n '/{w}/,/}/p' {f}", "1 awk -F: '{print $2}' {f}", "1 awk 'NR>={n} && NR<={m}' {f}", "1 tr -d '\\r' < {f} | wc -c", "1 sort -u {f} | head", "1 comm -12 <(sort {f}) <(sort {g})", "1 diff <(git show HEAD:{f}) {f}", "1 md5sum {f}", "1 sha256sum {f}", "1 xxd {f} | head", "1 realpath {f}", "1 readlink -f {f}", "1 jq '.scripts' package.json", "1 jq -r '.dependencies | keys[]' package.json", "1 yq '.jobs' .github/workflows/ci.yml", "1 column -t {f}", "1 type {tool}", "2 command -v {tool}", "1 uname -a", "1 nproc", "1 free -h", "1 df -h .", "1 id", "1 whoami", "1 printenv PATH", "1 echo $HOME", "1 printf '%s\\n' {w}", "1 lsof -i :8080", "1 while read -r l; do echo \"$l\"; done < {f}", "1 ps aux | grep {tool}", "1 jobs", "2 git diff --cached", "2 git diff main...HEAD", "1 git diff --name-only main", "2 git log -{n} --format='%h %s'", "1 git log --graph --oneline --all", "1 git log --since=yesterday", "1 git log -S{w} -- {f}", "1 git show HEAD:{f}", "1 git show HEAD~{n} -- {f}", "1 git grep -n {w}", "1 git describe --tags", "1 git shortlog -sn", "1 git tag", "1 git stash show -p", "1 git reflog -{n}", "1 git config user.name", "1 git merge-base main HEAD", "1 git rev-list --count HEAD", "1 git ls-files | grep {w}", "1 git cat-file -t HEAD", "1 git status -sb", "1 git branch --show-current", "1 git branch -vv", "1 git blame -L {n},+5 {f}",
	},
	"w": {
		"8 go test ./...", "4 go build ./...", "3 go test ./{d} -run {w}", "2 go vet ./...", "2 go test -race ./... 2>&1 | tail -{n}", "1 go mod tidy", "2 gofmt -l .", "1 go run ./cmd/{w}", "1 golangci-lint run", "1 go test -coverprofile=cover.out ./...",
		"8 npm test", "4 npm run build", "3 npm run lint", "2 npx tsc --noEmit", "2 npm run {w}", "1 npx jest {f}", "1 npx vitest run", "1 npx eslint {d}", "1 npx prettier --check .", "1 node {f}", "1 yarn build", "1 pnpm test", "1 tsc -p .", "1 npm run dev -- --port 30{n}",
		"8 pytest", "4 pytest -q {f}", "2 pytest -k {w} -x", "2 python3 {f}", "1 python -m pytest tests/", "1 ruff check {d}", "1 mypy {d}", "1 black --check {d}", "1 python3 -m venv .venv", "1 tox", "1 python3 -c 'print({n})'", "1 flake8 {d}", "1 python manage.py test",
		"8 cargo test", "4 cargo build", "3 cargo check", "2 cargo clippy", "1 cargo fmt --check", "1 cargo run -- {w}", "1 cargo build --release", "1 cargo bench", "1 cargo test {w} -- --nocapture",
		"8 make", "4 make test", "2 make -j{n}", "1 make clean", "2 cmake -B build", "2 cmake --build build", "1 ctest --test-dir build", "1 gcc -o a {f}", "1 ./build/{w}", "1 gcc -Wall -O2 -c {f}", "1 ninja -C build", "1 make {w} 2>&1 | tail -{n}",
		"3 mkdir -p {d}/{w}", "2 touch {f}", "2 cp {f} {g}", "2 mv {f} {g}", "2 echo {w} > {f}", "1 echo {w} >> {f}", "1 chmod +x {f}", "1 sed -i 's/{w}/x/g' {f}", "1 tee {f} < {g}", "5 git add {f}", "3 git add -A", "6 git commit -m '{msg}'", "2 git checkout -b {w}", "1 git checkout {w}", "1 git stash", "1 git merge {w}", "1 git add -A && git commit -m '{msg}'", "1 cat > {f} <<'EOF'\n{w}\nEOF", "1 tar czf out.tgz {d}", "1 unzip {w}.zip -d {d}", "1 bash {w}.sh", "1 ./scripts/{w}.sh", "1 find {d} -name '*.{x}' | xargs wc -l", "1 find {d} -name '*.{x}' -exec grep -l {w} {} +", "1 timeout 60 make test", "1 FOO=1 npm test", "1 git cherry-pick {w}", "1 git switch {w}", "1 git tag v1.{n}",
		"2 go test ./{d}/... -v -run {w} -count=1", "1 go test -bench=. ./{d}", "1 go test ./... -short", "1 go generate ./...", "1 go fmt ./...", "1 gofmt -w {f}", "1 goimports -w {f}", "1 go build -o bin/{w} ./cmd/{w}", "1 go mod edit -replace example.com/x=../x", "1 go tool cover -func=cover.out", "1 staticcheck ./...", "1 go work sync", "1 GOOS=linux GOARCH=arm64 go build ./...", "1 CGO_ENABLED=0 go build ./...", "1 npm run test -- --watch=false", "1 npm run typecheck", "1 npm start", "1 npx eslint . --fix", "1 npx prettier --write {f}", "1 npx tsc", "1 node -e 'console.log({n})'", "1 node --test", "1 npx playwright test", "1 NODE_ENV=production npm run build", "1 npm run build:prod", "1 yarn test", "1 pnpm run build", "1 bun test", "1 npx ts-node {f}", "1 npm version patch", "1 python {f}", "1 python -m {w}", "1 python -m unittest discover", "1 pytest tests/test_api.py::test_{w}", "1 pytest --cov={d}", "1 pytest -x --tb=short -q 2>&1 | tail -{n}", "1 source .venv/bin/activate && pytest", "1 . .venv/bin/activate && python {f}", "1 .venv/bin/python -m pytest", "1 .venv/bin/pytest -q", "1 PYTHONPATH=. pytest", "1 PYTHONPATH=src python {f}", "1 ruff check --fix .", "1 ruff format .", "1 black .", "1 isort {d}", "1 python -m mypy {d}", "1 uv run pytest", "1 poetry run pytest", "1 python manage.py migrate", "1 python manage.py makemigrations", "1 python3 - <<'EOF'\nprint({n})\nEOF", "1 python -c 'import {w}; print({w}.__version__)'", "1 pre-commit run --all-files", "1 pdm run test", "1 hatch run test", "1 coverage run -m pytest", "1 coverage report", "1 cargo fmt", "1 cargo test --all-features", "1 cargo test -p {w}", "1 cargo clippy -- -D warnings", "1 cargo run --bin {w} -- --help", "1 cargo doc --no-deps", "1 cargo nextest run", "1 RUST_BACKTRACE=1 cargo test", "1 rustfmt {f}", "1 cargo check --workspace --all-targets", "1 make all", "1 make -C {d}", "1 make CFLAGS=-O2", "1 make V=1", "1 ./configure --prefix=$PWD/out", "1 cmake -S . -B build -DCMAKE_BUILD_TYPE=Debug", "1 cmake --build build -j{n}", "1 cd build && ctest --output-on-failure", "1 cc -o t {f} && ./t", "1 g++ -std=c++20 -o t {f}", "1 clang-format -i {f}", "1 clang-tidy {f}", "1 valgrind ./build/{w}", "1 gdb -batch -ex run ./build/{w}", "1 ar rcs libx.a {w}.o", "1 ninja", "1 meson setup build", "1 meson test -C build", "1 bazel build //...", "1 mkdir -p build && cd build && cmake ..", "1 cp -r {d} backup", "1 touch {d}/__init__.py", "1 ln -s {f} {g}", "1 echo '{w}' | tee -a {f}", "1 sed -i '{n}d' {f}", "1 sed -i.bak 's/{w}/y/' {f}", "1 perl -pi -e 's/{w}/y/g' {f}", "1 awk '{print $1}' {f} > {g}", "1 sort {f} > {g}", "1 jq '.version=\"1.0.{n}\"' package.json > tmp.json && mv tmp.json package.json", "1 cat >> {f} <<'EOF'\n{w}\nEOF", "1 git mv {f} {g}", "1 git add -p", "1 git commit -am '{msg}'", "1 git commit -m \"$(cat <<'EOF'\n{msg}\n\nmore\nEOF\n)\"", "1 git stash push -m {w}", "1 git stash pop", "1 git checkout main", "1 git checkout HEAD~1 -- {f}", "1 git apply fix.patch", "1 git revert HEAD --no-edit", "1 git merge --no-ff {w}", "1 git tag -a v2.{n} -m x", "1 git worktree add .wt/{w}", "1 git init", "1 patch -p1 < fix.patch", "1 tar xzf {w}.tgz", "1 zip -r out.zip {d}", "1 ./{w}.sh", "1 bash -c 'make && make test'", "1 sh scripts/{w}.sh", "1 chmod 755 scripts/{w}.sh", "1 export FOO=bar && make", "1 set -e; make; make test", "1 for i in 1 2 3; do go test ./{d} || break; done", "1 if make; then echo ok; fi", "1 (cd {d} && make)", "1 make install", "1 make & wait", "1 nohup npm start > out.log 2>&1 &", "1 time make", "1 timeout {n} npm test", "1 env FOO=1 go test ./...", "1 xargs -a {f} wc -l", "1 find {d} -name '*.{x}' -exec sed -i 's/{w}/z/' {} +", "1 grep -rl {w} {d} | xargs sed -i 's/{w}/z/g'", "1 sqlite3 dev.db 'select count(*) from users'", "1 sqlite3 dev.db .tables", "1 protoc --go_out=. {w}.proto", "1 npx webpack", "1 npx vite build", "1 java -jar {w}.jar", "1 mvn -q test", "1 ./gradlew test", "1 ./mvnw package", "1 bundle exec rspec", "1 rake test", "1 php artisan migrate", "1 dotnet test", "1 dotnet build", "1 swift build", "1 mix test", "1 helm template .", "1 terraform validate", "1 terraform fmt",
	},
	"d": {
		"2 rm {f}", "2 rm -rf build", "1 rm -rf node_modules dist", "1 git reset --hard HEAD", "1 git checkout -- {f}", "1 git clean -fd", "1 git rebase main", "1 git branch -D {w}", "1 git commit --amend --no-edit", "1 git stash drop", "1 git restore {f}", "1 cargo clean", "1 go clean -cache", "1 find . -name '*.tmp' -delete",
		"1 rm -rf {d}/{w}", "1 rm -f {f} {g}", "1 rm *.log", "1 git push --force", "1 git clean -fdx", "1 git branch -d {w}", "1 git tag -d v1.{n}", "1 git rebase -i HEAD~{n}", "1 git reset --hard origin/main", "1 git checkout .", "1 git restore .", "1 git stash clear", "1 rm -rf .venv && python -m venv .venv", "1 make distclean && rm -rf build", "1 git filter-branch --all", "1 npm uninstall {w}", "1 docker system prune -f", "1 find . -name '*.pyc' -exec rm {} +",
	},
	"e": {
		"3 npm install", "1 npm install {w}", "1 npm ci", "1 pip install -r requirements.txt", "1 pip install {w}", "1 go get example.com/{w}", "1 cargo add {w}", "1 uv sync", "1 poetry install", "2 git push", "1 git push origin {w}", "2 git pull", "1 git fetch", "1 curl -s https://example.com/{w}", "1 wget https://example.com/{w}.tgz", "1 docker build -t {w} .", "1 docker ps", "1 docker compose up -d", "1 gh pr view {n}", "1 gh pr create --fill", "1 kubectl get pods", "1 ssh host uptime", "1 cat ~/.config/{w}", "1 ls /etc", "1 cat /etc/hosts", "1 cp {f} /tmp/{w}", "1 ls ~", "1 sudo apt-get install {w}", "1 npx create-vite {w}",
		"1 npm i -D {w}", "1 npm update", "1 npm outdated", "1 npm audit", "1 npm publish", "1 yarn add {w}", "1 pnpm install", "1 npx {w}", "1 pip install -e .", "1 pip install --upgrade pip", "1 pip3 install {w}==1.{n}", "1 uv pip install {w}", "1 uv add {w}", "1 poetry add {w}", "1 pipx run {w}", "1 go get -u ./...", "1 go install example.com/{w}@latest", "1 go mod download", "1 cargo install {w}", "1 cargo update", "1 rustup update", "1 gem install {w}", "1 bundle install", "1 composer install", "1 brew install {w}", "1 apt-get update", "1 git push -u origin HEAD", "1 git push --tags", "1 git pull --rebase", "1 git fetch --all", "1 git clone https://example.com/{w}.git", "1 git submodule update --init", "1 git ls-remote origin", "1 gh pr list", "1 gh run view", "1 gh issue list", "1 gh api repos/x/y", "1 docker run --rm -it {w}", "1 docker compose logs {w}", "1 docker exec {w} ls", "1 docker logs {w}", "1 kubectl logs {w}", "1 kubectl apply -f {d}/k.yaml", "1 helm list", "1 terraform plan", "1 aws s3 ls", "1 curl -s localhost:8080/health", "1 curl -X POST http://localhost:3000/api -d '{\"a\":1}'", "1 wget -q https://example.com/x", "1 ping -c 1 example.com", "1 dig example.com", "1 nc -z localhost 5432", "1 psql -c 'select 1'", "1 redis-cli ping", "1 scp {f} host:/tmp", "1 rsync -av {d}/ host:/srv", "1 cat /tmp/{w}.log", "1 ls ../", "1 cat ../other/{f}", "1 cd .. && ls", "1 find / -name {w}", "1 cat ~/.bashrc", "1 tail /var/log/syslog", "1 sudo make install", "1 kill %1", "1 kill -9 4{n}", "1 pkill node", "1 systemctl status nginx", "1 crontab -l", "1 open {f}", "1 code {f}", "1 go test ./... > /tmp/out.txt 2>&1", "1 mkdir -p /tmp/{w}", "1 echo x >> ~/.profile",
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
		if next := all[r.IntN(len(all))]; r.IntN(16) == 0 && !strings.Contains(t.text, "\n") { // two at once: the stronger counts
			t.text += " && " + next.text
			if strings.Index("rwde", next.does) > strings.Index("rwde", t.does) {
				t.does = next.does
			}
		}
		text := strings.NewReplacer(
			"{f}", pick("main.go src/app.ts README.md lib/util.py src/main.rs src/main.c package.json internal/server/http.go tests/test_api.py Makefile"),
			"{g}", pick("old.go src/b.ts notes.md lib/b.py src/lib.rs src/util.c"), "{d}", pick("src lib internal tests cmd . docs"), "{n}", fmt.Sprint(1+r.IntN(30)), "{m}", fmt.Sprint(40+r.IntN(60)),
			"{w}", pick("server TODO handleRequest parse_config feature-login Widget release deps user"), "{x}", pick("go ts py rs c"), "{tool}", pick("go node python3 cargo gcc"), "{msg}", pick("fix-parser add-tests update-docs"),
		).Replace(t.text)
		// What people and models put around a command.
		if !strings.ContainsAny(text, "\n&|<>") {
			switch r.IntN(24) {
			case 0, 1:
				text += fmt.Sprintf(" 2>&1 | tail -%d", 5+r.IntN(60))
			case 2:
				text += fmt.Sprintf(" 2>&1 | head -%d", 5+r.IntN(60))
			case 3:
				if strings.Contains(text, "..") { // it would name another place
					break
				}
				text = "cd " + pick("src lib internal tests cmd") + " && " + text
			case 4:
				text += " 2>/dev/null || true"
			case 5:
				text += "; echo \"exit: $?\""
			}
		}
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
		inside := (!a.Opaque || a.Bounded) && len(a.External) == 0 && len(a.Protected) == 0
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
