package programs

import (
	"github.com/pillion-dev/pillion/tools/shell/scan"

	"bytes"
	"encoding/binary"
	"os"
	"path/filepath"
	"strings"
)

// Git runs programs that a repository's own settings name: a file-system monitor, filters, text converters. So a git
// command that only reads is taken for one that changes nothing only where the settings name none.

// maxGitFile bounds the settings and the index that are looked at, in bytes.
// An index of half a million files stays below it.
const maxGitFile = 64 << 20

// QuietGit is the environment for a command that changes nothing: should the settings change after it was looked at,
// git still starts no monitor, no hook and no pager of theirs.
// GIT_CONFIG_COUNT and its numbered pairs come after all files, so they win (git-config(1), "ENVIRONMENT").
func QuietGit() []string {
	return []string{
		"GIT_CONFIG_COUNT=3", "GIT_CONFIG_KEY_0=core.fsmonitor", "GIT_CONFIG_VALUE_0=false",
		"GIT_CONFIG_KEY_1=core.hooksPath", "GIT_CONFIG_VALUE_1=" + os.DevNull, "GIT_CONFIG_KEY_2=core.pager", "GIT_CONFIG_VALUE_2=cat",
	}
}

// quietRepository reports that git, started in dir, finds a repository whose own settings run nothing: a plain one, without
// submodules, settings read from elsewhere, or objects fetched on demand. tracked are the paths of its index, relative
// to top.
// It walks up from dir as git does (git(1), GIT_CEILING_DIRECTORIES), and gives up at a bare repository: files that anybody may
// put into a project could make one, with settings of their own.
func quietRepository(dir string) (top string, tracked []string, ok bool) {
	for top = dir; ; top = filepath.Dir(top) {
		at := filepath.Join(top, ".git")
		if fi, err := os.Lstat(at); err == nil {
			if !fi.IsDir() {
				if at = gitFile(at); at == "" {
					return top, nil, false
				}
			}
			tracked, ok = quietFolder(at)
			return top, tracked, ok
		}
		if exists(top, "HEAD") && exists(top, "objects") && exists(top, "refs") || top == filepath.Dir(top) {
			return top, nil, false // a bare repository among the files, or none at all
		}
	}
}

// exists reports anything of that name in dir, a dangling link included.
func exists(dir, name string) bool {
	_, err := os.Lstat(filepath.Join(dir, name))
	return err == nil
}

// gitFile is the folder that a .git file of a worktree names; empty when it is none.
// The file holds one line, "gitdir: PATH" (gitrepository-layout(5)); a relative path starts at the file's folder.
func gitFile(path string) string {
	text, err := readSmall(path, scan.MaxPath)
	dir, ok := strings.CutPrefix(string(text), "gitdir: ")
	dir = strings.TrimRight(dir, "\r\n")
	if err != nil || !ok || dir == "" || strings.ContainsAny(dir, "\n\x00") {
		return ""
	}
	if !filepath.IsAbs(dir) {
		dir = filepath.Join(filepath.Dir(path), dir)
	}
	return dir
}

// quietFolder looks at a .git folder: its settings, and those of the repository that it is a worktree of.
func quietFolder(dir string) (tracked []string, ok bool) {
	common := dir
	if text, err := readSmall(filepath.Join(dir, "commondir"), scan.MaxPath); err == nil {
		common = strings.TrimRight(string(text), "\r\n")
		if !filepath.IsAbs(common) {
			common = filepath.Join(dir, common)
		}
	}
	if !exists(dir, "HEAD") || !exists(common, "objects") || exists(common, "modules") || exists(common, "hooks/post-index-change") {
		return nil, false // git would look further up or into submodules, or run that hook, as git describe --dirty does
	}
	// A worktree has settings of its own beside the shared ones (git-worktree(1), "CONFIGURATION FILE"). A missing file is quiet.
	for _, file := range [...]string{filepath.Join(common, "config"), filepath.Join(common, "config.worktree"), filepath.Join(dir, "config.worktree")} {
		text, err := readSmall(file, 1<<20)
		if err != nil && !os.IsNotExist(err) || !quietSettings(string(text)) {
			return nil, false
		}
	}
	// A repository without an index tracks nothing.
	index, err := readSmall(filepath.Join(dir, "index"), maxGitFile)
	if os.IsNotExist(err) {
		return nil, true
	}
	if err != nil {
		return nil, false
	}
	return indexPaths(index)
}

// readSmall reads a plain file of at most limit bytes.
// The kind is checked first: reading a pipe in the place of a file would wait for ever.
func readSmall(path string, limit int64) ([]byte, error) {
	fi, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !fi.Mode().IsRegular() || fi.Size() > limit {
		return nil, os.ErrInvalid
	}
	return os.ReadFile(path)
}

// quietSections are the settings that name no program and no other file of settings: all of a section, or the keys
// listed. What is not here is not quiet.
// An empty list stands for all keys of the section.
var quietSections = map[string]string{
	"core": "repositoryformatversion filemode bare logallrefupdates ignorecase precomposeunicode symlinks autocrlf eol safecrlf quotepath " +
		"abbrev compression preloadindex untrackedcache longpaths whitespace commentchar commentstring checkstat trustctime sparsecheckout " +
		"sparsecheckoutcone protecthfs protectntfs editor",
	"remote": "url fetch pushurl push tagopt prune prunetags skipdefaultupdate skipfetchall gh-resolved",
	"log":    "date decorate abbrevcommit follow mailmap showroot",
	"status": "relativepaths short branch showstash showuntrackedfiles aheadbehind displaycommentprefix renames renamelimit",
	"diff": "algorithm renames renamelimit context interhunkcontext mnemonicprefix noprefix colormoved colormovedws indentheuristic wordregex " +
		"wserrorhighlight statgraphwidth",
	"merge":      "conflictstyle ff renames renamelimit stat autostash log verbosity", // merge.NAME.driver runs a program
	"extensions": "worktreeconfig",                                                    // objectformat: an index of another shape
	"branch":     "", "user": "", "author": "", "committer": "", "init": "", "color": "", "advice": "", "push": "", "pull": "", "rebase": "",
	"fetch": "", "rerere": "", "commit": "", "tag": "", "column": "", "gui": "", "gitg": "", "vscode-merge-base": "",
	"github-pr-owner-number": "", "lfs": "", "pack": "", "gc": "", "maintenance": "", "index": "", "feature": "", "i18n": "", "stash": "",
	"worktree": "", "blame": "", "versionsort": "", "http": "", "transfer": "", "receive": "", "checkout": "", "apply": "", "am": "",
}

// quietSettings reads a file of git's settings, strictly: a line of another shape is not quiet. The format is that of
// git-config(1), "CONFIGURATION FILE".
// Git accepts more than this reads; whatever this does not read costs a question only.
func quietSettings(text string) bool {
	keys, known := "", false
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		switch {
		case line == "" || line[0] == '#' || line[0] == ';':
		case strings.HasSuffix(line, `\`):
			return false // it continues in the next one
		case line[0] == '[':
			head, ok := strings.CutSuffix(line[1:], "]")
			name, sub, _ := strings.Cut(head, " ")
			sub = strings.TrimSpace(sub)
			if !ok || sub != "" && (len(sub) < 2 || sub[0] != '"' || sub[len(sub)-1] != '"' || strings.Contains(sub[1:len(sub)-1], `"`)) ||
				strings.ContainsAny(name, `]"`) {
				return false
			}
			keys, known = quietSections[strings.ToLower(name)]
			if !known || (strings.EqualFold(name, "diff") || strings.EqualFold(name, "merge")) && sub != "" { // diff.NAME.textconv
				return false
			}
		default:
			key, _, _ := strings.Cut(line, "=")
			key = strings.ToLower(strings.TrimSpace(key))
			if !known || key == "" || strings.Trim(key, "abcdefghijklmnopqrstuvwxyz0123456789-") != "" || keys != "" && !hasField(keys, key) {
				return false
			}
		}
	}
	return true
}

// hasField reports a word of a list that is written with blanks between its words.
func hasField(list, word string) bool {
	for f := range strings.FieldsSeq(list) {
		if f == word {
			return true
		}
	}
	return false
}

// indexPaths are the paths that an index holds. It is not ok for an index with submodules, and for a file that is not an index of
// version 2, 3 or 4 (gitformat-index(5)).
func indexPaths(index []byte) (paths []string, ok bool) {
	if len(index) < 12 || string(index[:4]) != "DIRC" {
		return nil, false
	}
	// The header is the signature, the version and the number of entries, 4 bytes each, in network byte order.
	version, count := binary.BigEndian.Uint32(index[4:]), binary.BigEndian.Uint32(index[8:])
	if version < 2 || version > 4 {
		return nil, false
	}
	const fixed = 62 // dates, device, mode and size, SHA-1, flags
	rest, before := index[12:], ""
	// One entry: fixed fields, a path that ends in NUL, padding. A size that does not fit makes the whole index unknown.
	for range count {
		if len(rest) < fixed+1 {
			return nil, false
		}
		mode := binary.BigEndian.Uint32(rest[24:])
		head := fixed
		if version > 2 && rest[60]&0x40 != 0 { // more flags
			head += 2
		}
		keep := 0
		if version == 4 {
			strip, n, ok := indexNumber(rest[min(head, len(rest)):])
			if !ok || strip > len(before) {
				return nil, false
			}
			keep, head = len(before)-strip, head+n
		}
		if head > len(rest) {
			return nil, false
		}
		end := bytes.IndexByte(rest[head:], 0)
		if end < 0 || mode>>12 == 0o16 || mode>>12 == 0o04 { // a submodule, or a folder that a sparse index leaves out
			return nil, false
		}
		before = before[:keep] + string(rest[head:head+end])
		paths = append(paths, before)
		next := head + end + 1
		if version < 4 {
			// Versions 2 and 3 pad an entry with NUL bytes to a multiple of eight.
			next = (head + end + 8) &^ 7
		}
		if next > len(rest) {
			return nil, false
		}
		rest = rest[next:]
	}
	for len(rest) > 20 { // extensions, then a checksum
		size := binary.BigEndian.Uint32(rest[4:])
		if rest[0] < 'A' || rest[0] > 'Z' || int64(size) > int64(len(rest)-8) { // one without which the entries are not all: a split or sparse index
			return nil, false
		}
		rest = rest[8+size:]
	}
	return paths, true
}

// indexNumber reads the number of bytes that a path of version 4 drops from the one before it.
// The encoding is that of offsets in packs (gitformat-pack(5)): seven bits a byte, the highest first, one added for each
// byte that follows. Five bytes are more than a path can be long.
func indexNumber(p []byte) (value, length int, ok bool) {
	for i, b := range p {
		if i > 4 {
			break
		}
		value = value<<7 | int(b&0x7f)
		if b&0x80 == 0 {
			return value, i + 1, true
		}
		value++
	}
	return 0, 0, false
}
