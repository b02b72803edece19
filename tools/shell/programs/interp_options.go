package programs

import "strings"

// valueOption reports an option of an interpreter whose value is the next word, behind which code may follow.
func valueOption(name, option string) bool {
	switch {
	case strings.HasPrefix(name, "python") || strings.HasPrefix(name, "pypy"):
		return option == "-W" || option == "-X" || option == "--check-hash-based-pycs"
	case name == "node" || name == "nodejs" || name == "tsx":
		return option == "-C" || hasField("--conditions --env-file --env-file-if-exists --title --input-type --disable-warning --icu-data-dir --openssl-config --stack-trace-limit --max-old-space-size --redirect-warnings --diagnostic-dir --unhandled-rejections --test-name-pattern --test-reporter --test-concurrency --watch-path --tsconfig --dns-result-order --experimental-config-file --localstorage-file", option)
	}
	return hasField(valueOptions[name], option)
}

var valueOptions = map[string]string{
	"perl": "-I", "ruby": "-I -C -E -F -K -T --encoding --external-encoding --internal-encoding", "php": "-d -c -z -S -t --define --php-ini", "lua": "-l", "luajit": "-l -j -O", "julia": "-p -t -J -C -H --project --threads --procs --sysimage --cpu-target", "osascript": "-l -s",
	"elixir": "-r -pr -pa -pz -S --name --sname --cookie", "iex": "-r -pr -pa -pz -S --name --sname --cookie", "erl": "-pa -pz -name -sname -setcookie -env -config -boot -mode -kernel -s -run -eval", "scala": "-cp -classpath --class-path -d -J", "groovy": "-cp -classpath --classpath -c --encoding -D", "kotlin": "-cp -classpath",
	"ts-node": "-P --project -C --compiler -I --ignore -O --compiler-options -D --cwd --dir", "psql": "-h -p -U -d -v -F -R -P -T -o -L --host --port --username --dbname --set --variable --pset --output --log-file", "mysql": "-h -P -u -D --host --port --user --database -S --socket", "sqlite3": "-separator -newline -nullvalue -mmap -maxsize -vfs -lookaside -pagecache -init",
	"gdb": "-d -p -c -s -e -cd --directory --symbols --exec --core -tty -b", "lldb": "-a -p -n -c -f --arch --file --core", "emacs": "-d -L -l --load --chdir --directory -T", "guile": "-L -C -l -x", "sbcl": "--core --dynamic-space-size --control-stack-size --load", "racket": "-I -t -l -r -S", "octave": "-p --path", "swipl": "-g -t -f -p -s -l -x", "duckdb": "-separator -newline -nullvalue -init", "raku": "-I -M",
}
