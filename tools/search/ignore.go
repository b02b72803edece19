package search

import (
	"bufio"
	"bytes"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// ignoreNames are the ignore files of one folder, in order of precedence. .gitignore applies with or without a repository around it.
var ignoreNames = [...]string{".rgignore", ".ignore", ".gitignore"}

// The indexes of scope.rules, continuing those of ignoreNames, in order of precedence. As in ripgrep, ripgrep's own files take
// precedence over Git's.
const (
	kindGit     = 2 // index of .gitignore in ignoreNames
	kindExclude = 3 // .git/info/exclude
	kindGlobal  = 4 // core.excludesFile
	ignoreKinds = 5
)

// maxIgnoreFile is how much of one ignore file is read, in bytes. Real ones have a few kB; a hostile repository must not be able to
// fill the memory.
const maxIgnoreFile = 4 << 20

// scope holds the rules of the ignore files of one folder and its parents. Folders without ignore files share their parent's scope. A scope
// is immutable once made, so all workers of a walk share it.
type scope struct {
	parent *scope
	base   string // absolute, with a separator at its end
	rules  [ignoreKinds]*ruleSet
	hasGit bool // a repository begins here, so .gitignore files further up are not used
}

// ignored reports whether the rules hide a path. As in ripgrep, the kind of ignore file decides first, and then which folder is
// nearer.
func (s *scope) ignored(abs string, isDir bool) bool { return s.hides(abs, isDir, false) }

// hides is ignored without the rules of kinds that apply only within one repository, if shielded is true. The .gitignore and
// exclude files of an outer repository do not hide files of an inner one, so a search that begins in the inner one does not use
// them.
func (s *scope) hides(abs string, isDir, shielded bool) bool {
	name := abs[strings.LastIndexByte(abs, filepath.Separator)+1:]
	for kind := range ignoreKinds {
		local := kind == kindGit || kind == kindExclude
		if local && shielded {
			continue
		}
		for at := s; at != nil; at = at.parent {
			if r := at.rules[kind]; r != nil {
				rel := name // relative to a folder above the search, for the global file
				if len(abs) > len(at.base) {
					rel = filepath.ToSlash(abs[len(at.base):])
				}
				if verdict := r.match(rel, name, isDir); verdict != 0 {
					return verdict > 0
				}
			}
			// Git does not read ignore files above the repository's root.
			if at.hasGit && local {
				break
			}
		}
	}
	return false
}

// Ignored returns a function that reports whether an ignore file hides a path below root, or a folder that contains the path. The function
// reads each ignore file once and misses later changes, so it is for one pass over a tree. It is not safe for concurrent use.
// The answer for each folder is kept, so each ignore file is read once for a list of many paths.
func Ignored(root string) func(abs string, dir bool) bool { return above(root).below(root) }

// below is Ignored within a scope; the scope has the rules of the files above root.
func (s *scope) below(root string) func(abs string, dir bool) bool {
	type known struct {
		scope  *scope
		hidden bool
	}
	dirs := map[string]known{root: {scope: s.enter(root, specialNames(root))}}
	var folder func(dir string) known
	folder = func(dir string) known {
		if k, ok := dirs[dir]; ok {
			return k
		}
		up := folder(filepath.Dir(dir))
		k := known{scope: up.scope, hidden: up.hidden || up.scope.ignored(dir, true)}
		// As in Git, a line with ! cannot bring back what is in an ignored folder (gitignore(5)).
		if !k.hidden { // nothing in a hidden folder can be shown again
			k.scope = up.scope.enter(dir, specialNames(dir))
		}
		dirs[dir] = k
		return k
	}
	return func(abs string, dir bool) bool {
		if len(abs) <= len(root) || !strings.HasPrefix(abs, withSeparator(root)) {
			return false
		}
		up := folder(filepath.Dir(abs))
		return up.hidden || up.scope.ignored(abs, dir)
	}
}

// ruleSet is one parsed ignore file. Most lines are a base name or an extension and are found in a map; the others are tried one by
// one. All lists contain indexes into rules: if several rules match, the last one in the file decides.
type ruleSet struct {
	rules   []rule
	names   map[string][]int // by base name, ascending
	endings map[string][]int // by the text after the last dot, with the dot
	others  []int
}

// rule is one line of an ignore file, or one alternative of its braces.
type rule struct {
	wild    *wild
	negate  bool // the line begins with !
	dirOnly bool // the line ends with /
}

// match returns 1 for ignored, -1 for explicitly not, 0 when no line matches; the last line that matches decides.
func (rs *ruleSet) match(rel, name string, isDir bool) int {
	best := -1
	// Each list is searched from the end and only as far as the best match so far, as an earlier rule cannot change the result. sure is set
	// for lists whose key has matched already.
	try := func(list []int, sure bool) {
		for _, i := range slices.Backward(list) {
			if i <= best {
				return
			}
			r := &rs.rules[i]
			if (isDir || !r.dirOnly) && (sure || r.wild.match(rel, name)) {
				best = i
				return
			}
		}
	}
	try(rs.names[name], true)
	if dot := strings.LastIndexByte(name, '.'); dot >= 0 {
		try(rs.endings[name[dot:]], true)
	}
	try(rs.others, false)
	switch {
	case best < 0:
		return 0
	case rs.rules[best].negate:
		return -1
	}
	return 1
}

// parseIgnore reads gitignore lines by the rules of gitignore(5), "PATTERN FORMAT". A line whose braces are not
// alternatives is taken as it is, and one with an open class matches nothing, as in Git. The result is nil if there are no rules; callers test for nil to save time.
func parseIgnore(text []byte) *ruleSet {
	rs := &ruleSet{names: map[string][]int{}, endings: map[string][]int{}}
	text = bytes.TrimPrefix(text, []byte("\xef\xbb\xbf"))
	for raw := range bytes.SplitSeq(text, []byte("\n")) {
		line := strings.TrimSuffix(string(raw), "\r")
		if strings.HasPrefix(line, "#") {
			continue
		}
		line = trimIgnoreLine(line)
		var r rule
		anchored := false
		if strings.HasPrefix(line, "!") {
			r.negate, line = true, line[1:]
		}
		if strings.HasSuffix(line, "/") {
			r.dirOnly, line = true, line[:len(line)-1]
		}
		if strings.HasPrefix(line, "/") {
			anchored, line = true, line[1:]
		}
		if line == "" {
			continue
		}
		// Git has no braces. ripgrep has, and people write them; where they are no alternatives the line is as Git reads it.
		alts, err := expand(line)
		if err != nil {
			alts = []string{line}
		}
		for _, a := range alts {
			// A slash at the beginning or in the middle anchors a line to its file's folder; a line without one applies at every depth below.
			r.wild = newWild(a, anchored || strings.Contains(line, "/"))
			rs.add(r)
		}
	}
	if len(rs.rules) == 0 {
		return nil
	}
	return rs
}

// add enters a rule into the list in which it can be looked up. Indexes ascend in each list, which match relies on.
func (rs *ruleSet) add(r rule) {
	i := len(rs.rules)
	rs.rules = append(rs.rules, r)
	if p := r.wild.pattern; !r.wild.path {
		ending, star := strings.CutPrefix(p, "*")
		switch {
		case !strings.ContainsAny(p, `*?[\`):
			rs.names[p] = append(rs.names[p], i)
			return
		case star && !strings.ContainsAny(ending, `*?[\`) && strings.LastIndexByte(ending, '.') == 0:
			rs.endings[ending] = append(rs.endings[ending], i)
			return
		}
	}
	rs.others = append(rs.others, i)
}

// enter returns the scope of a folder whose entries include the given special names (.git and ignore files). A walk knows these
// names because it has read the folder; looking for the files would cost four calls of stat for each folder.
func (s *scope) enter(dir string, special []string) *scope {
	if len(special) == 0 {
		return s
	}
	in := &scope{parent: s, base: withSeparator(dir)}
	for _, name := range special {
		if name == ".git" {
			in.hasGit = true
			in.rules[kindExclude] = readIgnore(filepath.Join(dir, ".git", "info", "exclude"))
			continue
		}
		in.rules[slices.Index(ignoreNames[:], name)] = readIgnore(filepath.Join(dir, name))
	}
	return in
}

// withSeparator ends a folder's path with one separator, so that /a is not taken for the
// parent of /ab.
func withSeparator(dir string) string {
	if strings.HasSuffix(dir, string(filepath.Separator)) {
		return dir
	}
	return dir + string(filepath.Separator)
}

// specialNames are the names in a folder that change what is ignored below it.
func specialNames(dir string) []string {
	var out []string
	for _, name := range append(ignoreNames[:], ".git") {
		if _, err := os.Lstat(filepath.Join(dir, name)); err == nil {
			out = append(out, name)
		}
	}
	return out
}

// above is the scope of the ignore files in the folders above root, and of the person's global excludes. It does not have root's
// own ignore files, because the walk enters root like every other folder.
func above(root string) *scope {
	var dirs []string
	for dir := filepath.Dir(root); ; dir = filepath.Dir(dir) {
		dirs = append(dirs, dir)
		if dir == filepath.Dir(dir) {
			break
		}
	}
	s := &scope{base: withSeparator(root)}
	s.rules[kindGlobal] = readIgnore(globalExcludes())
	for _, dir := range slices.Backward(dirs) {
		s = s.enter(dir, specialNames(dir))
	}
	return s
}

// readIgnore reads an ignore file; nil if it does not exist or cannot be read. Git ignores such a file too.
func readIgnore(path string) *ruleSet {
	if path == "" {
		return nil
	}
	info, err := os.Stat(path)
	if err != nil || !info.Mode().IsRegular() { // a FIFO would block
		return nil
	}
	f, err := os.Open(path)
	if err != nil {
		return nil
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxIgnoreFile))
	if err != nil {
		return nil
	}
	return parseIgnore(text)
}

// globalExcludes is the ignore file that Git reads for every repository of the person: core.excludesFile, else git/ignore below
// XDG_CONFIG_HOME, else below ~/.config (gitignore(5)). It is "" if there is no home folder.
func globalExcludes() string {
	home, config := configHome()
	for _, file := range gitConfigs() {
		if p := excludesFile(file); p != "" {
			if rest, ok := strings.CutPrefix(p, "~/"); ok && home != "" {
				p = filepath.Join(home, rest)
			}
			return p
		}
	}
	if config == "" {
		return ""
	}
	return filepath.Join(config, "git", "ignore")
}

// configHome returns the person's home folder and the folder of configurations in it.
func configHome() (home, config string) {
	home, _ = os.UserHomeDir()
	if config = os.Getenv("XDG_CONFIG_HOME"); config == "" && home != "" {
		config = filepath.Join(home, ".config")
	}
	return home, config
}

// gitConfigs are the configurations of Git that are the person's own, in the order in which they are read here.
func gitConfigs() (files []string) {
	home, config := configHome()
	if home != "" {
		files = append(files, filepath.Join(home, ".gitconfig"))
	}
	if config != "" {
		files = append(files, filepath.Join(config, "git", "config"))
	}
	return files
}

// excludesFile reads core.excludesFile from a Git configuration; "" if it is not set. It does not check the section, because no
// other section has a key with that name. Starting git for each search would take longer than many searches.
func excludesFile(config string) string {
	f, err := os.Open(config)
	if err != nil {
		return ""
	}
	defer f.Close()
	lines := bufio.NewScanner(io.LimitReader(f, maxIgnoreFile))
	for lines.Scan() {
		key, value, ok := strings.Cut(lines.Text(), "=")
		if ok && strings.EqualFold(strings.TrimSpace(key), "excludesfile") {
			return strings.Trim(strings.TrimSpace(value), `" `)
		}
	}
	return ""
}

// outerRuleFiles are the files that decide what is ignored below root and are not in it: ignore files of the folders above, the person's own, and
// the Git configuration that names it. They are those that above reads, whether they exist or not.
func outerRuleFiles(root string) []string {
	out := append(gitConfigs(), globalExcludes())
	for dir := filepath.Dir(root); ; dir = filepath.Dir(dir) {
		for _, name := range ignoreNames {
			out = append(out, filepath.Join(dir, name))
		}
		out = append(out, filepath.Join(dir, ".git"), filepath.Join(dir, ".git", "info", "exclude"))
		if dir == filepath.Dir(dir) {
			break
		}
	}
	return slices.DeleteFunc(out, func(s string) bool { return s == "" })
}

// globalRules are the rules of the person's global ignore file, or nil.
func (s *scope) globalRules() *ruleSet {
	for ; s != nil; s = s.parent {
		if s.rules[kindGlobal] != nil {
			return s.rules[kindGlobal]
		}
	}
	return nil
}

// anchored reports whether a rule compares whole paths.
func (rs *ruleSet) anchored() bool {
	return rs != nil && slices.ContainsFunc(rs.rules, func(r rule) bool { return r.wild.path })
}
