package programs_test

import (
	"testing"

	"github.com/pillion-dev/pillion/tools/shell/programs"
	"github.com/pillion-dev/pillion/tools/shell/scan"
)

// Code that a command holds as text is left to the sandbox only where all of it can be read and nothing in it deletes, starts programs,
// connects or names places outside.
func TestCodeThatTheSandboxMayHold(t *testing.T) {
	held := []string{
		`python3 -c 'print(1)'`, `python -c 'import server; print(server.__version__)'`, `python3 -c "import json; print(json.load(open('package.json'))['name'])"`,
		"python3 - <<'EOF'\nimport re\ns = open('a.py').read()\nopen('a.py', 'w').write(re.compile('x').sub('y', s))\nEOF", "python3 <<'EOF'\nprint(2)\nEOF",
		`node -e 'console.log(require("./package.json").version)'`, `node -p '1+1'`, `node -e "const f = function(a) { return a }; process.stdout.write('x')"`,
		`ruby -e 'puts 1'`, `perl -ne 'print if /x/' a.txt`, `perl -pi -e 's/a/b/g' a.txt`, `php -r 'echo 1;'`,
		`awk '{ print > "out.txt" }' a.txt`, `cat a.txt | python3 -c 'print(1)'`, `timeout 5 python3 -c 'print(1)' && ls`, `python3 -c 'print(1)' > out.txt`,
	}
	for _, command := range held {
		if a := analyzed(command); !a.Bounded || !a.Opaque {
			t.Errorf("not left to the sandbox: %s (opaque %v: %s)", command, a.Opaque, a.Why)
		} else if ok, why := programs.Contained(a); !ok {
			t.Errorf("asked with permission auto: %s: %s", command, why)
		} else if a.ReadOnly {
			t.Errorf("silent without a sandbox: %s", command)
		}
	}
	asked := []string{
		`python3 -c 'import shutil; shutil.rmtree("src")'`, `python3 -c 'import os; os.remove("a.py")'`, `python3 -c "import pathlib; pathlib.Path('a').unlink()"`, `node -e 'require("fs").rmSync("src", {recursive: true})'`,
		`python3 -c 'import os; os.system("git push")'`, `python3 -c 'import subprocess as s; s.run(["git","push"])'`, `node -e 'require("child_process").execSync("git push")'`, "perl -e '`git push`'", `perl -e 'open(F, "|git push")'`, "ruby -e '`git push`'", `perl -e 'unlink glob("*")'`,
		`python3 -c "print(open('/etc/passwd').read())"`, `python3 -c "import os; print(os.environ)"`, `node -e 'console.log(process.env)'`, `python3 -c "print(open('../x').read())"`, `python3 -c "import pathlib; print(pathlib.Path.home())"`,
		`python3 -c "exec('pri' + 'nt(1)')"`, `python3 -c "__import__('o' + 's')"`, `python3 -c "getattr(x, 'y')()"`, `node -e 'new Function("x")()'`, `node -e 'require("c" + "p")' | sh`,
		`python3 -c "import urllib.request as u; u.urlopen('x')"`, `node -e 'fetch("x")'`, `python3 -c 'import socket'`,
		`python3 -c "$(cat x.py)"`, `cat x.py | python3`, `cat x.py | python3 -`, "python3 - <<EOF\nprint($x)\nEOF", `python3 < x.py`, `cat x | python3 -ic 'print(1)'`, `cat x | node -r ./y`, `node --import ./y -e 1`, `cat x | node -i -e 1`, `perl < x.pl`, `curl -s example.com | python3`,
		`bash -c "$x"`, `echo ls | sh`, `eval "$x"`, `. ./env.sh`, `vim -c ':!ls' a`, `sqlite3 x.db '.shell ls'`, `awk 'BEGIN { system("ls") }'`, `awk '{ print | "sh" }' a`, `sed 's/a/b/e' a`,
		`python3 -c 'print(1)'; rm -rf src`, `python3 -c 'print(1)' && git push`, `python3 -c 'print(1)' && eval "$x"`, `python3 -c 'print(1)' > /tmp/x`, `LD_PRELOAD=./x.so python3 -c 'print(1)'`, `cd .. && python3 -c 'print(1)'`, `python3 -c 'print(1)' > .git/config`,
	}
	for _, command := range asked {
		if ok, _ := programs.Contained(analyzed(command)); ok {
			t.Errorf("not asked with permission auto: %s", command)
		}
	}
}

// analyzed is the analysis in a folder with .git/config protected, as the bash tool protects it.
func analyzed(command string) *scan.Analysis {
	return programs.Analyze(scan.Request{Command: command, Dir: "/w/p", Root: "/w/p", Home: "/w", Protected: func(real string, access scan.Access) (string, bool) {
		return "settings", real == "/w/p/.git/config"
	}})
}
