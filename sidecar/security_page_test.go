package main

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"
)

// Every promise of docs/SECURITY.md names a test that there is, or says that there is none.
func TestEveryPromiseHasItsTest(t *testing.T) {
	page := read(t, "../docs/SECURITY.md")
	named := regexp.MustCompile("`((?:agent|lspbridge|sidecar|tools)[a-z/]*)\\.(Test\\w+)`")
	sources := map[string]string{}
	rows := 0
	generated := false // the table of language servers, which TestRestraints writes
	for n, line := range strings.Split(page, "\n") {
		generated = strings.HasPrefix(line, "<!-- restraints") || generated && !strings.HasPrefix(line, "<!-- /restraints")
		cells := strings.Split(line, " | ")
		if generated || len(cells) != 3 || strings.Contains(line, "| promise |") {
			continue
		}
		rows++
		found := named.FindAllStringSubmatch(line, -1)
		if len(found) == 0 && !strings.Contains(cells[2], "not tested") {
			t.Errorf("SECURITY.md:%d: a promise without a test: %s", n+1, line)
		}
		for _, m := range found {
			if _, ok := sources[m[1]]; !ok {
				files, _ := filepath.Glob(filepath.Join("..", m[1], "*_test.go"))
				for _, f := range files {
					sources[m[1]] += read(t, f)
				}
			}
			if !strings.Contains(sources[m[1]], "\nfunc "+m[2]+"(") {
				t.Errorf("SECURITY.md:%d: there is no test %s in %s", n+1, m[2], m[1])
			}
		}
	}
	if rows < 40 {
		t.Errorf("only %d promises were read; has the table another form now?", rows)
	}
}

// scripts/promises/broken.txt says of each promise how to break it, in words that still fit the code, and names tests of that promise.
// `go run ./scripts/promises` breaks them; that takes too long for each run.
func TestEveryPromiseCanBeBrokenOnce(t *testing.T) {
	page, _, _ := strings.Cut(read(t, "../docs/SECURITY.md"), "<!-- restraints")
	var rows []string
	for line := range strings.SplitSeq(page, "\n") {
		if strings.HasPrefix(line, "| ") && strings.Count(line, " | ") == 2 && !strings.Contains(line, "| promise |") {
			rows = append(rows, strings.TrimPrefix(line, "| "))
		}
	}
	broken := map[string]bool{}
	for record := range strings.SplitSeq(read(t, "../scripts/promises/broken.txt"), "\n\n") {
		fields := map[string]string{}
		for line := range strings.SplitSeq(record, "\n") {
			if key, value, ok := strings.Cut(line, " "); ok && key != "#" {
				fields[key] = value
			}
		}
		if fields["row"] == "" {
			continue
		}
		at := slices.IndexFunc(rows, func(row string) bool { return strings.HasPrefix(row, fields["row"]) })
		if at < 0 {
			t.Errorf("no promise begins with %q", fields["row"])
			continue
		}
		broken[rows[at]] = true
		if fields["none"] != "" {
			continue
		}
		if n := strings.Count(read(t, filepath.Join("..", fields["in"])), fields["-"]); n != 1 || fields["-"] == "" {
			t.Errorf("%s: %s has %d times %q", fields["row"], fields["in"], n, fields["-"])
		}
		for test := range strings.FieldsSeq(fields["test"]) {
			if !strings.Contains(rows[at], "`"+test+"`") {
				t.Errorf("%s: %s is no test of this promise", fields["row"], test)
			}
		}
	}
	for _, row := range rows {
		if !broken[row] {
			t.Errorf("scripts/promises/broken.txt does not say how to break: %.80s", row)
		}
	}
}

// Everything from outside is named by version and checksum.
func TestPackagesArePinned(t *testing.T) {
	var lock struct {
		Packages map[string]struct {
			Version, Resolved, Integrity string
			Link                         bool
		}
	}
	if err := json.Unmarshal([]byte(read(t, "../package-lock.json")), &lock); err != nil {
		t.Fatal(err)
	}
	for name, p := range lock.Packages {
		if name == "" || p.Link || !strings.Contains(name, "node_modules/") {
			continue
		}
		if p.Integrity == "" || p.Version == "" {
			t.Errorf("package-lock.json: %s has no checksum or version", name)
		}
		if p.Resolved != "" && !strings.HasPrefix(p.Resolved, "https://registry.npmjs.org/") {
			t.Errorf("package-lock.json: %s comes from %s", name, p.Resolved)
		}
	}
	if len(lock.Packages) < 10 {
		t.Errorf("%d packages", len(lock.Packages))
	}
	if mod := read(t, "../go.mod"); regexp.MustCompile(`(?m)=>\s+\.{0,2}/`).MatchString(mod) {
		t.Error("go.mod replaces a module by a folder, which go.sum does not cover")
	}
}

// The list of what is in a binary is made of the binary.
func TestSBOM(t *testing.T) {
	if _, err := exec.LookPath("node"); err != nil {
		t.Skip("node is not installed")
	}
	out, err := exec.Command("../scripts/sbom.sh", os.Args[0]).Output()
	if err != nil {
		t.Fatal(err)
	}
	var bom struct {
		BomFormat  string
		Components []struct{ Name, Version, Purl string }
	}
	if err := json.Unmarshal(out, &bom); err != nil {
		t.Fatal(err)
	}
	have := map[string]bool{}
	for _, c := range bom.Components {
		if c.Version == "" || have[c.Purl] {
			t.Errorf("%+v", c)
		}
		have[c.Purl], have[c.Name] = true, true
	}
	for _, name := range []string{"modernc.org/sqlite", "mvdan.cc/sh/v3", "typescript"} {
		if bom.BomFormat != "CycloneDX" || !have[name] {
			t.Errorf("%s is not in the list", name)
		}
	}
}

// What is released is checked by the script that builds it; this shows that the check can fail. make dist and make reproducible run that script.
func TestAProgramThatIsNotHardenedIsNotReleased(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("releases are built on Linux")
	}
	gcc, err := exec.LookPath("gcc")
	if err != nil {
		t.Skip("gcc is not installed")
	}
	dir := t.TempDir()
	source := filepath.Join(dir, "t.c")
	if err := os.WriteFile(source, []byte("int main(void) { return 0; }\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	for flags, missing := range map[string]string{
		"-pie -Wl,-z,now,-z,relro":     "",
		"-no-pie -Wl,-z,now":           "position-independent",
		"-pie -Wl,-z,lazy":             "BIND_NOW",
		"-pie -Wl,-z,now,-z,norelro":   "RELRO",
		"-pie -Wl,-z,now,-z,execstack": "stack",
	} {
		program := filepath.Join(dir, "t")
		if out, err := exec.Command(gcc, append(strings.Fields(flags), "-o", program, source)...).CombinedOutput(); err != nil {
			t.Fatalf("%s: %v\n%s", flags, err, out)
		}
		out, err := exec.Command("../scripts/hardened.sh", program).CombinedOutput()
		if (err == nil) != (missing == "") || !strings.Contains(string(out), missing) {
			t.Errorf("%s: %v %s; want %q", flags, err, out, missing)
		}
	}
	if script := read(t, "../scripts/build-release.sh"); !strings.HasSuffix(script, "\n./scripts/hardened.sh \"$to\"\n") || !strings.HasPrefix(script, "#!/usr/bin/env bash\n") || !strings.Contains(script, "\nset -euo pipefail\n") {
		t.Error("build-release.sh does not end with the check")
	}
}

// Every test that the fault suite names exists: `go test -run` says nothing of one that does not.
func TestTheFaultSuiteNamesTests(t *testing.T) {
	rows := regexp.MustCompile(`(?m)^row "([^"]+)" (\S+) '?([^'\n]+)'?$`).FindAllStringSubmatch(read(t, "../scripts/faults.sh"), -1)
	if len(rows) < 22 {
		t.Fatalf("only %d rows were read", len(rows))
	}
	for _, row := range rows {
		files, _ := filepath.Glob(filepath.Join("..", row[2], "*_test.go"))
		source := ""
		for _, f := range files {
			source += read(t, f)
		}
		for _, name := range strings.Split(row[3], "|") {
			if !regexp.MustCompile(`(?m)^func ` + name + `\(`).MatchString(source) {
				t.Errorf("%s: %s has no %s", row[1], row[2], name)
			}
		}
	}
}

// A weakness that is found fails the audit; a service that cannot be reached is said, and is not a "nothing known".
func TestTheAuditTellsFoundFromNotAsked(t *testing.T) {
	for _, c := range []struct {
		name, golang, npm string
		fails             bool
		says              []string
	}{
		{"nothing", "echo 'No vulnerabilities found.'", "true", false, []string{"govulncheck: nothing known", "npm audit: nothing known"}},
		{"unreachable", "echo 'fetching vulnerabilities: 403 Forbidden'; exit 1", "echo 'npm warn audit 405 Method Not Allowed'; echo 'npm error audit endpoint returned an error'; exit 1", false, []string{"govulncheck: not asked: fetching", "npm audit: not asked: npm warn audit 405"}},
		{"a module", "echo 'Vulnerability #1: GO-2026-0001'; exit 3", "true", true, []string{"GO-2026-0001"}},
		{"a package", "echo 'No vulnerabilities found.'", "echo '1 high severity vulnerability'; exit 1", true, []string{"1 high severity"}},
	} {
		bin := t.TempDir()
		for name, script := range map[string]string{"go": c.golang, "npm": c.npm} {
			if err := os.WriteFile(filepath.Join(bin, name), []byte("#!/bin/sh\n"+script+"\n"), 0o755); err != nil {
				t.Fatal(err)
			}
		}
		cmd := exec.CommandContext(t.Context(), "bash", "../scripts/audit.sh")
		cmd.Env = append(os.Environ(), "PATH="+bin+":"+os.Getenv("PATH"))
		out, err := cmd.CombinedOutput()
		if (err != nil) != c.fails {
			t.Errorf("%s: %v\n%s", c.name, err, out)
		}
		for _, want := range c.says {
			if !strings.Contains(string(out), want) {
				t.Errorf("%s: nothing of %q:\n%s", c.name, want, out)
			}
		}
	}
}
