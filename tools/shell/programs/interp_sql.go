package programs

import (
	"regexp"
	"strings"
	"sync"
	"unicode"

	"github.com/pillion-dev/pillion/tools/shell/scan"
)

// dotCommands are the dot commands of sqlite3 and duckdb that neither use files nor start programs. Any other word after a dot counts
// as one that does, because sqlite3 accepts abbreviations: .sh is .shell.
const dotCommands = "tables schema headers header mode indexes indices databases dbinfo dump fullschema stats timer show width separator " +
	"nullvalue help print echo explain limit lint sha3sum version eqp changes bail exit quit columns constant highlight maxrows rows"

// deletingSQL matches statements after which rows or tables are gone.
var deletingSQL = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`(?i)\b(drop|delete|truncate)\b`) })

// sqlPrograms makes the command opaque if an argument has a statement or a command of the client that uses files or starts programs:
// \! of psql, .shell of sqlite3. It does not check what statements do in the database, since that touches no file of the project.
func sqlPrograms(name string, c *scan.Visit) {
	for _, a := range c.Args[1:] {
		text := a.Text
		if v, ok := a.One(); ok {
			text = v
		}
		// The database is one file of the project, and only a copy brings back what was in it.
		if deletingSQL().MatchString(text) {
			c.Class = strongest(effectDeletes, c.Class)
		}
		what := ""
		switch name {
		case "psql":
			what = psqlLeaves(text)
		case "mysql":
			what = mysqlLeaves(text)
		default:
			what = sqliteLeaves(name, text)
		}
		if what == "" {
			continue
		}
		c.Opaque(name + " may leave the database: " + what)
		access := scan.Write
		if strings.HasPrefix(what, "\\i") || what == ".read" || what == ".import" || what == ".restore" || what == ".load" {
			access = scan.Read
		}
		codePaths(text, access, c)
	}
}

// oneSpaced returns a text in lower case, with single spaces and without comments, so that a search for words also finds them in
// "COPY/**/t TO PROGRAM 'x'".
func oneSpaced(text string) string {
	low := strings.ToLower(text)
	for {
		before, rest, ok := strings.Cut(low, "/*")
		if !ok {
			break
		}
		_, after, _ := strings.Cut(rest, "*/")
		low = before + " " + after
	}
	return strings.ReplaceAll(strings.Join(strings.Fields(low), " "), " (", "(")
}

// anyOf returns the first of the words that text contains, without blanks around it; empty if it contains none.
func anyOf(text string, words ...string) string {
	for _, word := range words {
		if strings.Contains(text, word) {
			return strings.TrimSpace(word)
		}
	}
	return ""
}

// psqlLeaves returns what in an argument of psql may use files, start programs or reach another server; empty if nothing does. A
// backslash begins a command of psql only at the start of an argument; any other text is sent to the server.
func psqlLeaves(text string) string {
	if command, ok := strings.CutPrefix(strings.TrimSpace(strings.TrimPrefix(strings.TrimPrefix(text, "-c"), "--command=")), "\\"); ok {
		rest := strings.TrimLeftFunc(command, unicode.IsLetter)
		word := strings.TrimSuffix(command, rest)
		// \d… and \l print lists. \lo_import and \lo_export use files of this machine, \! and \g | start programs.
		describes := strings.HasPrefix(word, "d") || strings.HasPrefix(word, "l") && !strings.HasPrefix(word, "lo") ||
			hasField("x timing conninfo z sf sv encoding pset echo q h a t H", word)
		if !describes || strings.ContainsAny(rest, "`|\\") || strings.HasPrefix(rest, "!") {
			return "\\" + word
		}
		return ""
	}
	low := oneSpaced(text)
	if strings.Contains(low, "copy") {
		return anyOf(low, "program", " to '", " from '", " to e'", " from e'", " to $", " from $")
	}
	return anyOf(low, "pg_read_file", "pg_read_binary_file", "pg_ls_dir", "lo_import", "lo_export", "pg_file_write", "pg_execute_server_program", "dblink")
}

// mysqlLeaves returns what in an argument of mysql may use files or start programs; empty if nothing does. The client takes its own
// commands after a backslash, or as words at the start of a line (mysql(1), "mysql Client Commands").
func mysqlLeaves(text string) string {
	if what := anyOf(text, "\\!", "\\.", "\\T", "\\P", "\\e"); what != "" {
		return what
	}
	low := oneSpaced(text)
	for _, word := range [...]string{"system", "source", "tee", "pager", "edit"} { // a semicolon counts as the end of a line too
		for line := range strings.FieldsFuncSeq(strings.ToLower(text), func(r rune) bool { return r == '\n' || r == ';' }) {
			if f := strings.Fields(strings.TrimPrefix(strings.TrimPrefix(line, "-e"), "--execute=")); len(f) > 1 && f[0] == word {
				return word
			}
		}
	}
	return anyOf(low, "outfile", "dumpfile", "load_file", "infile")
}

// sqliteLeaves returns what in an argument of sqlite3 or duckdb may use files or start programs: a dot command that is not in
// dotCommands, or a function or statement for files; empty if nothing does. A word that begins with a dot and has a slash or
// another dot is the name of a file.
func sqliteLeaves(name, text string) string {
	if command, ok := strings.CutPrefix(strings.TrimSpace(text), "."); ok && !strings.HasPrefix(command, "/") && !strings.HasPrefix(command, ".") {
		word, rest, _ := strings.Cut(command, " ")
		if !hasField(dotCommands, strings.ToLower(word)) || strings.Contains(rest, "|") {
			if word = strings.ToLower(word); len(strings.Fields(word)) != 1 || strings.ContainsAny(word, "/.") {
				return "" // the name of a file: .data/app.db
			}
			return "." + word
		}
		return ""
	}
	low := oneSpaced(text)
	// DuckDB reads files in SQL: FROM 'x.csv', read_csv(…).
	if name == "duckdb" {
		return anyOf(low, "copy ", "install ", "load ", "attach", "read_", "export ", "shellfs", "getenv", "glob(", " from '")
	}
	if strings.Contains(low, "vacuum") && strings.Contains(low, "into") {
		return "vacuum into"
	}
	return anyOf(low, "load_extension", "writefile", "readfile", "edit(", "fsdir", "attach", "zipfile")
}

// codePaths notes the files outside the project that a piece of code names as words or in quotes. It misses paths that the code
// computes, so the caller must also make the command opaque.
func codePaths(code string, access scan.Access, c *scan.Visit) {
	for word := range strings.FieldsFuncSeq(code, func(r rune) bool { return strings.ContainsRune(" \t\r\n'\"`;|(){},<>!", r) }) {
		codePath(word, access, c)
	}
}

// awkPaths notes the files outside the project that double-quoted strings in an awk program name, directly after <, > or "=". A
// string after "=" counts as written, because a program may keep the name in a variable first: f = "/etc/x"; print > f.
func awkPaths(code string, c *scan.Visit) {
	before := ""
	for i, part := range strings.Split(code, `"`) {
		if i%2 == 1 && before != "" {
			switch before[len(before)-1] {
			case '<':
				codePath(part, scan.Read, c)
			case '>', '=':
				codePath(part, scan.Write, c)
			}
		}
		before = strings.TrimRight(part, " \t")
	}
}

// sedPaths notes the files outside the project that a sed script names. A path after r or R is read, any other counts as written.
func sedPaths(script string, c *scan.Visit) {
	before := ""
	for word := range strings.FieldsFuncSeq(script, func(r rune) bool { return strings.ContainsRune(" \t\n;}", r) }) {
		access := scan.Write
		if strings.HasSuffix(before, "r") || strings.HasSuffix(before, "R") {
			access = scan.Read
		}
		codePath(word, access, c)
		before = word
	}
}

// codePath notes a word of code that is a path outside the project: it begins with ~/ or ../, or is absolute and has two parts or
// more. A word with a single part (/x) is more often a part of a regular expression.
func codePath(word string, access scan.Access, c *scan.Visit) {
	switch {
	case strings.ContainsAny(word, "*?[\\ \n") || strings.HasSuffix(word, "/"):
	case strings.HasPrefix(word, "~/"):
		c.TouchValue(scan.Literal(c.Home()+word[1:]), access)
	case strings.HasPrefix(word, "../"), strings.HasPrefix(word, "/") && strings.Count(word, "/") > 1:
		c.TouchValue(scan.Literal(word), access)
	}
}
