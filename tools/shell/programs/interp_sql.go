package programs

import (
	"strings"

	"github.com/pillion-dev/pillion/tools/shell/scan"
)

// dotCommands are those of sqlite3 and duckdb that stay within the database and the terminal. They may be shortened, so
// any other word after a dot may be .shell.
const dotCommands = "tables schema headers header mode indexes indices databases dbinfo dump fullschema stats timer show width separator " +
	"nullvalue help print echo explain limit lint sha3sum version eqp changes bail exit quit columns constant highlight maxrows rows"

// sqlPrograms looks at statements in arguments for what leaves the database: \! of psql, .shell of sqlite3.
// What a statement does within the database is not judged: it touches no file of the project.
func sqlPrograms(name string, c *scan.Visit) {
	for _, a := range c.Args[1:] {
		text := a.Text
		if v, ok := a.One(); ok {
			text = v
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

// oneSpaced is a text in small letters with single spaces and without comments.
// "COPY/**/t TO PROGRAM 'x'" must not pass a search for words.
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

// anyOf is the first of the words that text holds, without the blanks around it; empty when it holds none.
func anyOf(text string, words ...string) string {
	for _, word := range words {
		if strings.Contains(text, word) {
			return strings.TrimSpace(word)
		}
	}
	return ""
}

// psqlLeaves names what leaves the database. A backslash is a command of psql's only at the beginning of an argument:
// the rest goes to the server as it is.
func psqlLeaves(text string) string {
	if command, ok := strings.CutPrefix(strings.TrimSpace(strings.TrimPrefix(strings.TrimPrefix(text, "-c"), "--command=")), "\\"); ok {
		end := strings.IndexFunc(command, func(r rune) bool { return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') })
		word, rest := command, ""
		if end >= 0 {
			word, rest = command[:end], command[end:]
		}
		// \d… describes and \l lists; \lo_import and \lo_export are files of this machine, \! and \g | are programs.
		describes := strings.HasPrefix(word, "d") || strings.HasPrefix(word, "l") && !strings.HasPrefix(word, "lo") ||
			hasField("x timing conninfo z sf sv encoding pset echo q h a t H", word)
		if word == "" || !describes || strings.ContainsAny(rest, "`|\\") || strings.HasPrefix(rest, "!") {
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

// mysqlLeaves names what leaves the database. The client reads its own commands at the beginning of a line, as words or
// after a backslash (mysql(1), "mysql Client Commands").
func mysqlLeaves(text string) string {
	if what := anyOf(text, "\\!", "\\.", "\\T", "\\P", "\\e"); what != "" {
		return what
	}
	low := oneSpaced(text)
	for _, word := range [...]string{"system", "source", "tee", "pager", "edit"} { // at the beginning of a line
		for line := range strings.FieldsFuncSeq(strings.ToLower(text), func(r rune) bool { return r == '\n' || r == ';' }) {
			if f := strings.Fields(strings.TrimPrefix(strings.TrimPrefix(line, "-e"), "--execute=")); len(f) > 1 && f[0] == word {
				return word
			}
		}
	}
	return anyOf(low, "outfile", "dumpfile", "load_file", "infile")
}

// sqliteLeaves names what leaves the database: a dot command that is not known to stay, or a function for files. A word that
// begins with a dot and holds a slash or another dot is a file's name.
func sqliteLeaves(name, text string) string {
	if command, ok := strings.CutPrefix(strings.TrimSpace(text), "."); ok && !strings.HasPrefix(command, "/") && !strings.HasPrefix(command, ".") {
		word, rest, _ := strings.Cut(command, " ")
		if !hasField(dotCommands, strings.ToLower(word)) || strings.Contains(rest, "|") {
			if word = strings.ToLower(word); len(strings.Fields(word)) != 1 || strings.ContainsAny(word, "/.") {
				return "" // a file: .data/app.db
			}
			return "." + word
		}
		return ""
	}
	low := oneSpaced(text)
	// DuckDB reads files in plain SQL: FROM 'x.csv', read_csv(…).
	if name == "duckdb" {
		return anyOf(low, "copy ", "install ", "load ", "attach", "read_", "export ", "shellfs", "getenv", "glob(", " from '")
	}
	if strings.Contains(low, "vacuum") && strings.Contains(low, "into") {
		return "vacuum into"
	}
	return anyOf(low, "load_extension", "writefile", "readfile", "edit(", "fsdir", "attach", "zipfile")
}

// codePaths notes the files outside the project that a piece of code names as words or in quotes. It cannot know what else the
// code touches, so the caller has made the command opaque.
func codePaths(code string, access scan.Access, c *scan.Visit) {
	for word := range strings.FieldsFuncSeq(code, func(r rune) bool { return strings.ContainsRune(" \t\r\n'\"`;|(){},<>!", r) }) {
		codePath(word, access, c)
	}
}

// awkPaths notes the files in the double-quoted strings of an awk program: those it writes to, reads from, or keeps.
// "=" counts because a name is often kept in a variable first: f = "/etc/x"; print > f.
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

// sedPaths notes the files that a sed script names after r, R, w and W.
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

// codePath notes a word of code that is a path outside: one with ~/ or ../, or an absolute one of two parts or more. A single
// part (/x/) is more often a regular expression.
func codePath(word string, access scan.Access, c *scan.Visit) {
	switch {
	case strings.ContainsAny(word, "*?[\\ \n") || strings.HasSuffix(word, "/"):
	case strings.HasPrefix(word, "~/"):
		c.TouchValue(scan.Literal(c.Home()+word[1:]), access)
	case strings.HasPrefix(word, "../"), strings.HasPrefix(word, "/") && strings.Count(word, "/") > 1:
		c.TouchValue(scan.Literal(word), access)
	}
}
