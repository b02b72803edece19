package editors

import (
	"bufio"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
)

// VS Code and the editors built from it keep a backup of each document with unsaved changes ("hot exit"), a second or
// two after the last key, and delete it when the document is saved or reverted. It outlives the window: the next start
// shows the unsaved text again. Written over meanwhile, the file could only be saved there by overwriting.
//
//	<user data>/Backups/<hash of the workspace>/<scheme>/<hash of the URI>
//
// The file begins with one line, "<URI> <JSON>\n", of at most 10,000 characters; the text follows as UTF-8
// (workingCopyBackupService.ts in VS Code's source). The URI has its spaces encoded. A server that shows VS Code in a
// browser keeps the backups below its own user data, of files on its own machine under the scheme "vscode-remote".

// codeFamily are the editors by the folder of their user data: below the configuration folder, or below the data folder
// or the home folder for those that are servers.
var codeFamily = []struct {
	name   string // for people
	folder string
	server bool
}{
	{"VS Code", "Code", false}, {"VS Code Insiders", "Code - Insiders", false}, {"Code - OSS", "Code - OSS", false},
	{"VSCodium", "VSCodium", false}, {"Cursor", "Cursor", false}, {"Windsurf", "Windsurf", false},
	{"code-server", "code-server/User", true}, {"OpenVSCode Server", ".openvscode-server/data/User", true}, {"VS Code", ".vscode-server/data/User", true},
}

const (
	// Bounds of a search that runs before each write.
	maxBackups  = 5000  // entries that are looked at, of all workspaces together
	maxPreamble = 10000 // characters; four bytes each at most
)

// codeBackup finds the editor that has a backup of one of the names whose text is not the file's.
func codeBackup(names []string) (holder, bool) {
	left := maxBackups
	for _, editor := range codeFamily {
		bases, scheme := configFolders(), "file"
		if editor.server {
			bases, scheme = dataFolders(), "vscode-remote"
		}
		for _, base := range bases {
			backups := filepath.Join(base, editor.folder, "Backups")
			workspaces, _ := os.ReadDir(backups)
			for _, w := range workspaces {
				dir := filepath.Join(backups, w.Name(), scheme)
				entries, _ := os.ReadDir(dir)
				for _, e := range entries {
					if left--; left < 0 {
						return holder{}, false
					}
					if e.Type().IsRegular() && backsUp(filepath.Join(dir, e.Name()), scheme, names) {
						return holder{editor: editor.name}, true
					}
				}
			}
		}
	}
	return holder{}, false
}

// backsUp reports whether a backup is of one of the names and has another text than the file. It is left out when VS Code
// has written the backup and the person has typed the text back since: nothing is lost then.
func backsUp(backup, scheme string, names []string) bool {
	f, err := os.Open(backup)
	if err != nil {
		return false
	}
	defer f.Close()
	r := bufio.NewReaderSize(f, 4*maxPreamble)
	line, err := r.ReadSlice('\n')
	if err != nil {
		return false // no preamble: a format that is not known
	}
	uri, _, _ := strings.Cut(strings.TrimSuffix(string(line), "\n"), " ")
	u, err := url.Parse(uri)
	if err != nil || u.Scheme != scheme {
		return false
	}
	u.Scheme = "file"
	path, ok := URIPath(u.String())
	if !ok || !slices.ContainsFunc(names, func(name string) bool { return samePath(path, name) }) {
		return false
	}
	text, err := io.ReadAll(io.LimitReader(r, MaxAsked))
	if err != nil {
		return true // it is there, and may well differ
	}
	disk, err := os.ReadFile(path)
	return err != nil || !sameText(string(text), string(disk))
}

// samePath compares paths as the file system does that VS Code runs on: it writes drive letters in lower case.
func samePath(a, b string) bool {
	if runtime.GOOS == "windows" {
		return strings.EqualFold(a, b)
	}
	return a == b
}

// configFolders are where programs keep their settings for this user (%APPDATA%, ~/Library/Application Support,
// $XDG_CONFIG_HOME or ~/.config). A client may start us with PATH alone, so that the person's XDG variables are not
// known; then it is the default below HOME.
func configFolders() []string {
	dir, _ := os.UserConfigDir()
	return folders(dir, ".config")
}

// dataFolders are where servers keep theirs: $XDG_DATA_HOME or ~/.local/share, and the home folder itself.
func dataFolders() []string { return folders(os.Getenv("XDG_DATA_HOME"), ".local/share", "") }

// folders are dir, if it is one, and those below the home folder.
func folders(dir string, below ...string) []string {
	var out []string
	if filepath.IsAbs(dir) {
		out = append(out, dir)
	}
	if home, err := os.UserHomeDir(); err == nil {
		for _, b := range below {
			if path := filepath.Join(home, b); !slices.Contains(out, path) {
				out = append(out, path)
			}
		}
	}
	return out
}
