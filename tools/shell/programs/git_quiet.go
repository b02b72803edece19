package programs

import (
	"github.com/pillion-dev/pillion/tools/shell/scan"

	"bytes"
	"encoding/binary"
	"os"
	"path/filepath"
	"strings"
)

// Git runs programs that the settings of a repository name: a file-system monitor, filters, text converters. So a Git command that
// reads counts as read-only only if these settings name no program.

// maxGitFile is the largest index that is read, in bytes. In a repository with a larger one no Git command counts as read-only. The
// index of half a million files is smaller.
const maxGitFile = 64 << 20

// QuietGit is the environment for a command that only reads. If the settings of a repository change between the analysis and the
// run, Git still starts no monitor, hook or pager that they name. GIT_CONFIG_COUNT and its numbered pairs override all
// configuration files (git-config(1), "ENVIRONMENT").
func QuietGit() []string {
	return []string{
		"GIT_CONFIG_COUNT=3", "GIT_CONFIG_KEY_0=core.fsmonitor", "GIT_CONFIG_VALUE_0=false",
		"GIT_CONFIG_KEY_1=core.hooksPath", "GIT_CONFIG_VALUE_1=" + os.DevNull, "GIT_CONFIG_KEY_2=core.pager", "GIT_CONFIG_VALUE_2=cat",
	}
}

// quietRepository finds the repository that Git uses in dir, and reports whether its settings make Git start no program. ok is false
// if there is no repository, and if this one has submodules, includes other settings, or fetches objects on demand. top is the
// root of the worktree, tracked are the paths in the index, relative to top.
// It goes up from dir as Git does, and gives up at a bare repository: ordinary files in a project can form one, with settings that
// an attacker chose.
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

// gitFile returns the folder that the .git file of a linked worktree names; empty if the file has another format. The file holds one
// line, "gitdir: PATH" (gitrepository-layout(5)); a relative path starts at the file's folder.
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

// trackedFiles finds the repository that Git uses in dir, whatever its settings, and reads its index. known is false if there is no index
// that can be read here. top is the root of the worktree, or dir.
func trackedFiles(dir string) (top string, tracked []string, known bool) {
	for top = dir; ; top = filepath.Dir(top) {
		at := filepath.Join(top, ".git")
		if fi, err := os.Lstat(at); err == nil {
			if !fi.IsDir() {
				at = gitFile(at)
			}
			if at == "" {
				return top, nil, false
			}
			index, err := readSmall(filepath.Join(at, "index"), maxGitFile)
			if err != nil {
				return top, nil, false
			}
			tracked, known = indexPaths(index)
			return top, tracked, known
		}
		if top == filepath.Dir(top) {
			return dir, nil, false
		}
	}
}

// quietFolder reports whether the settings for a .git folder make Git start no program, and returns the paths in its index. For a
// linked worktree, the settings of the main repository count too (commondir).
func quietFolder(dir string) (tracked []string, ok bool) {
	common := dir
	if text, err := readSmall(filepath.Join(dir, "commondir"), scan.MaxPath); err == nil {
		common = strings.TrimRight(string(text), "\r\n")
		if !filepath.IsAbs(common) {
			common = filepath.Join(dir, common)
		}
	}
	if !exists(dir, "HEAD") || !exists(common, "objects") || exists(common, "modules") || exists(common, "hooks/post-index-change") {
		return nil, false // Git would go further up or into submodules, or run the hook; even git describe --dirty runs it
	}
	// A worktree can have its own settings besides the shared ones (git-worktree(1), "CONFIGURATION FILE"). Each file may be missing.
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

// readSmall reads a regular file of at most limit bytes. It checks the type first, because reading a named pipe would block forever.
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

// quietSections lists, by section, the keys of settings that name neither a program nor another file of settings. An empty list stands
// for all keys of the section. In a repository with any other setting no Git command counts as read-only.
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
	"extensions": "worktreeconfig",                                                    // not objectformat: the index would have another format
	"branch":     "", "user": "", "author": "", "committer": "", "init": "", "color": "", "advice": "", "push": "", "pull": "", "rebase": "",
	"fetch": "", "rerere": "", "commit": "", "tag": "", "column": "", "gui": "", "gitg": "", "vscode-merge-base": "",
	"github-pr-owner-number": "", "lfs": "", "pack": "", "gc": "", "maintenance": "", "index": "", "feature": "", "i18n": "", "stash": "",
	"worktree": "", "blame": "", "versionsort": "", "http": "", "transfer": "", "receive": "", "checkout": "", "apply": "", "am": "",
}

// quietSettings reports that a Git configuration file (git-config(1), "CONFIGURATION FILE") has only keys of quietSections. It parses
// a part of what Git accepts. A line that it cannot parse makes the result false, which costs at most a needless approval request.
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

// hasField reports that word is one of the words in list, which are separated by blanks.
func hasField(list, word string) bool {
	for f := range strings.FieldsSeq(list) {
		if f == word {
			return true
		}
	}
	return false
}

// indexPaths returns the paths in a Git index. ok is false if the index has submodules, is split or sparse, or is not of version
// 2, 3 or 4 (gitformat-index(5)).
func indexPaths(index []byte) (paths []string, ok bool) {
	if len(index) < 12 || string(index[:4]) != "DIRC" {
		return nil, false
	}
	// The header is the signature, the version and the number of entries, 4 bytes each, in network byte order.
	version, count := binary.BigEndian.Uint32(index[4:]), binary.BigEndian.Uint32(index[8:])
	if version < 2 || version > 4 {
		return nil, false
	}
	const fixed = 62 // bytes before the path: times, device, mode, size, SHA-1, flags
	rest, before := index[12:], ""
	// One entry: fixed fields, a path that ends in NUL, padding. An entry that runs past the end makes the whole index invalid.
	for range count {
		if len(rest) < fixed+1 {
			return nil, false
		}
		mode := binary.BigEndian.Uint32(rest[24:])
		head := fixed
		if version > 2 && rest[60]&0x40 != 0 { // an extended entry: two more bytes of flags
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
		if rest[0] < 'A' || rest[0] > 'Z' || int64(size) > int64(len(rest)-8) { // a lowercase name: needed to understand the index (split, sparse)
			return nil, false
		}
		rest = rest[8+size:]
	}
	return paths, true
}

// indexNumber decodes the number of bytes to remove from the end of the previous path, which begins the path of an entry in version 4,
// and returns how many bytes it takes itself. The encoding is that of offsets in packs (gitformat-pack(5)): seven bits per byte, the
// highest first, plus one for each byte that follows. The length of any path fits in five bytes.
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
