package builtin

import (
	"slices"

	"github.com/pillion-dev/pillion/tools"
)

// Other names that the tools accept for their parameters, see tools.WithNames. Models that were trained on other programs' tools use the
// names of those tools. Their meaning is clear, and refusing the call would cost a step. Names are compared without case, '-' and '_'. The
// schema shows only the keys of these maps.
var (
	fileNames   = []string{"path", "file", "filename", "absolutePath", "targetFile", "relativePath"}
	folderNames = []string{"directory", "dir", "folder", "root", "cwd", "directoryPath", "dirPath", "targetDirectory", "absolutePath", "relativePath"}
	readNames   = tools.WithNames(map[string][]string{"filePath": slices.Concat(fileNames, []string{"folder", "directory"}), "offset": {"startLine", "lineStart", "start"}, "limit": {"lines", "maxLines", "lineCount", "numLines"}})
	editNames   = tools.WithNames(map[string][]string{"filePath": fileNames, "oldString": {"oldStr", "oldText", "search", "find"}, "newString": {"newStr", "newText", "replace", "replacement"}, "replaceAll": {"all", "global", "allowMultiple"}})
	multiNames  = tools.WithNames(map[string][]string{"filePath": fileNames, "edits": {"changes", "replacements", "operations"}})
	writeNames  = tools.WithNames(map[string][]string{"filePath": fileNames, "content": {"contents", "text", "fileText", "data"}})
	patchNames  = tools.WithNames(map[string][]string{"patchText": {"input", "patch", "diff"}})
	globNames   = tools.WithNames(map[string][]string{"pattern": {"glob", "globPattern", "query"}, "path": folderNames})
	grepNames   = tools.WithNames(map[string][]string{"pattern": {"regex", "regexp", "query", "search"}, "path": slices.Concat(folderNames, []string{"file", "filePath"}), "include": {"glob", "includePattern", "filePattern", "includes"}})
	listNames   = tools.WithNames(map[string][]string{"path": slices.Concat(folderNames, []string{"filePath"}), "ignore": {"exclude", "ignoreGlobs"}})
	bashNames   = tools.WithNames(map[string][]string{"command": {"cmd", "script", "commandLine"}, "timeout": {"timeoutMs"}, "workdir": {"cwd", "workingDirectory", "directory", "dir"}, "background": {"runInBackground", "isBackground"}})
	fetchNames  = tools.WithNames(map[string][]string{"url": {"uri", "link", "address"}})
)
