package programs

import (
	"embed"
	"fmt"
	"io/fs"
	"path"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"sync"

	"go.yaml.in/yaml/v4"

	"github.com/pillion-dev/pillion/tools/shell/scan"
)

// Record says what one program, or one of its subcommands, does with its words. The files records/*.yaml hold the records of all
// programs; a test parses every one.
//
// Lists of options and words are strings separated by blanks. An option is spelled as a person types it: -o, --output, and
// -output for programs of style single.
//
// A record without Reads, WritesWith and ReadsWith describes a program that changes something.
type Record struct {
	// How the program is called and how its options are spelled.
	Names    string            `yaml:"names" json:"names"`       // other names of the program
	Variants string            `yaml:"variants" json:"variants"` // "version": its name may end in a version, gcc-12; "machine": it may also begin with a target, arm-none-eabi-gcc
	Style    string            `yaml:"style" json:"style"`       // how options are spelled: "" (getopt), "single" (-output), "driver" (-I/x, -Wl,…)
	Fold     bool              `yaml:"fold" json:"fold"`         // upper and lower case are the same in options
	Options  map[string]string `yaml:"options" json:"options"`   // the options by the kind of their value, see optionKinds
	Unlisted string            `yaml:"unlisted" json:"unlisted"` // "text": options that are not listed name no files
	Words    string            `yaml:"words" json:"words"`       // kinds (wordKinds) of the words that are not options, in order; "..." after the last: it repeats

	// Whether the program changes anything.
	Reads      bool    `yaml:"reads" json:"reads"`             // it changes nothing, except with the options in Ends
	Ends       string  `yaml:"ends" json:"ends"`               // options with which it changes, runs or loads something all the same
	WritesWith *string `yaml:"writes-with" json:"writes-with"` // it writes the files among its words only with one of these options
	ReadsWith  string  `yaml:"reads-with" json:"reads-with"`   // it writes the files among its words except with one of these options
	Version    string  `yaml:"version" json:"version"`         // words such as --version: a call with only one of them prints, and no project file decides what runs
	Follows    string  `yaml:"follows" json:"follows"`         // options with which it follows symbolic links below the folders it is given
	Prints     string  `yaml:"prints" json:"prints"`           // options with which it prints files below the folders it is given; "always": with or without options

	// What else the program starts, loads or changes.
	Runs     string            `yaml:"runs" json:"runs"`         // its words are: "command": another call; "script": a string for a shell; "package": a program that may be downloaded
	Skip     int               `yaml:"skip" json:"skip"`         // how many words come before that call, or before the name of a subcommand; Words has their kinds
	Dashes   bool              `yaml:"dashes" json:"dashes"`     // if there is a "--", that call follows it
	Assigns  bool              `yaml:"assigns" json:"assigns"`   // NAME=value words may come before that call
	InFront  map[string]string `yaml:"in-front" json:"in-front"` // words to put before that call; when: options of the program, endings of the call's first word (.py), "*": always
	Prefix   string            `yaml:"prefix" json:"prefix"`     // a separator in the first word of that call: the program's name begins after it
	Packages bool              `yaml:"packages" json:"packages"` // its first word may be the name of a program in a package
	Unsure   string            `yaml:"unsure" json:"unsure"`     // why the effect of a call is unknown, as words to follow the program's name; the command is opaque
	Changes  string            `yaml:"changes" json:"changes"`   // files that it changes unnamed: ~/…, or relative to the worktree; with subcommands, only if there is a word

	Starts  string   `yaml:"starts" json:"starts"`           // options whose value is, or names, a program to start or code to load
	Opaque  []string `yaml:"opaque" json:"opaque"`           // regular expressions: a word that matches may start or load something else
	Because string   `yaml:"because" json:"because"`         // what a word of Opaque does, for the approval prompt; empty: "may run or load something else"
	Except  []string `yaml:"except" json:"except"`           // regular expressions: words that are harmless although they match Opaque, and values that are harmless in Starts
	Hooks   string   `yaml:"hooks" json:"hooks"`             // words with which it writes git hooks; "* a b": always, unless the first word is a or b
	Labels  string   `yaml:"labels" json:"labels"`           // a regular expression: words that look like paths and are not: //pkg:target, /p:NAME=value
	Keeps   string   `yaml:"keeps" json:"keeps"`             // "content": it changes only modes and times of files; "sources": what it writes is made from files it is given
	Editor  bool     `yaml:"editor" json:"editor"`           // code in its arguments (vim -c) names files as bare words, without quotes
	Obeys   bool     `yaml:"obeys-input" json:"obeys-input"` // it runs commands that it reads from its standard input
	Values  string   `yaml:"values" json:"values"`           // options of an interpreter whose value is the next word, which is then not the script
	Code    string   `yaml:"code" json:"code"`               // letters of an interpreter's options whose value is code, or a module to load: "e" for perl -e
	Shell   bool     `yaml:"shell" json:"shell"`             // it runs scripts in a language like bash's

	// What a grant covers, and how strong an effect the approval prompt names.
	Always string            `yaml:"always" json:"always"` // how many words of a call the pattern of a grant keeps; or never, none (see there)
	Effect map[string]string `yaml:"effect" json:"effect"` // options and words with which it does more than without them, by class; see stronger
	Base   string            `yaml:"base" json:"base"`     // the class of a call without such options

	// Where commands cannot be contained, only programs with Complete run without approval.
	Complete bool               `yaml:"complete" json:"complete"` // every option is listed; one that is not makes the command opaque
	Sub      map[string]*Record `yaml:"sub" json:"sub"`           // subcommands by name, of one or two words

	name, file string // name of the program and subcommand; file that holds the record
	known      bool   // set by compile, so false for unknownRecord
	spec       spec
	// The regular expressions of Opaque, Except and Labels.
	opaque []*regexp.Regexp
	except []*regexp.Regexp
	labels *regexp.Regexp
}

// spec is what the words of a call mean: its options with the kinds of their values, and the kinds of the other words.
// compile makes it from a Record. It is copied by value, and copies share the slices: their elements must not be changed.
type spec struct {
	options  []option
	words    []kind
	repeat   bool // the last kind applies to all words that follow
	single   bool // long options have one dash: go, openssl, java
	driver   bool // options are whole words or glued to their value, never clusters of letters: compilers
	fold     bool // upper and lower case are the same in options: tsc
	unlisted bool // options that are not listed name no files
	unknown  bool // the words may be anything: there is no record, or it has neither Words nor a number in Always
	complete bool // every option is listed
}

// option is one option with its dashes, and what its value is.
type option struct {
	name  string
	kind  kind
	first bool // its value replaces the first word: grep -e PATTERN
	glued bool // a value, if any, follows "=" and is never the next word
}

// kind says what a word or a value means for the analysis.
type kind byte

// The kinds of words and of options' values.
const (
	kindText      kind = iota
	kindRead           // a path that is read
	kindWrite          // a path that is written
	kindGeneric        // a path that is written, if it looks like one
	kindLook           // a path that is read, if it looks like one
	kindScript         // a text that is given to a shell
	kindDir            // the folder in which a wrapper runs its call
	kindFlag           // no value
	kindSelf           // a text with arguments for the program itself
	kindCall           // the first word of another call, which takes all words that follow
	kindMount          // a mount of a container: its host path counts as written
	kindListRead       // key=path,key=path: paths that are read
	kindListWrite      // the same, written
	kindForm           // key=@path: a path that is read
	kindFrom           // a path that is read, unless it names another machine
	kindTo             // a path that is written, unless it names another machine
	kindRemote         // a repository: an address, or a path if it looks like one, which counts as written
	kindTree           // a path that is read, if it looks like one, by a program that refuses paths outside the worktree
	kindTreeWrite      // the same, written
)

// never, as Record.Always, means that "always" is not offered for a call: what the program does depends on all its words, so any
// pattern would cover too much.
const never = "never"

// none, as Record.Always, means that no grant covers a call, not even a grant of its exact text: what crontab, tmux or docker start
// runs is not in its words, so each call needs approval.
const none = "none"

// optionKinds maps the keys of Record.Options to kinds. An option is in one of these lists only, which a test checks. The keys
// "first" and "optional" (see compile) repeat options of these lists.
var optionKinds = map[string]kind{"write": kindWrite, "read": kindRead, "path": kindGeneric, "look": kindLook, "script": kindScript,
	"dir": kindDir, "self": kindSelf, "call": kindCall, "mount": kindMount, "list-read": kindListRead, "list-write": kindListWrite, "form": kindForm,
	"text": kindText, "flag": kindFlag}

// optionOrder is the order of options in spec.options. An abbreviation that fits several options is taken for the first of them, so
// kinds that write come first: a wrong choice then costs at most a needless approval request.
var optionOrder = [...]string{"write", "list-write", "mount", "read", "list-read", "form", "path", "look", "script", "self", "call", "dir", "text", "flag"}

// wordKinds maps the names in Record.Words to kinds. "script" is not among them: a script is the value of an option, or what Runs
// says. "dir" is for the words that Skip counts.
var wordKinds = map[string]kind{"text": kindText, "read": kindRead, "write": kindWrite, "path": kindGeneric, "look": kindLook, "dir": kindDir,
	"from": kindFrom, "to": kindTo, "remote": kindRemote, "tree": kindTree, "tree-write": kindTreeWrite}

// compile makes spec and the regular expressions from the exported fields, also for the subcommands.
// The error names the record, because users see it for the records in their configuration.
func (r *Record) compile() error {
	r.known = true
	r.spec.single, r.spec.driver, r.spec.fold, r.spec.complete = r.Style == "single", r.Style == "driver", r.Fold, r.Complete
	r.spec.unlisted = r.Unlisted == "text"
	// "first": the option's value replaces the first word. "optional": the option has a value only if it is glued on with "=".
	first, optional := strings.Fields(r.Options["first"]), strings.Fields(r.Options["optional"])
	for _, key := range optionOrder {
		for name := range strings.FieldsSeq(r.Options[key]) {
			r.spec.options = append(r.spec.options, option{name, optionKinds[key], slices.Contains(first, name), slices.Contains(optional, name)})
		}
	}
	for word := range strings.FieldsSeq(r.Words) {
		word, r.spec.repeat = strings.CutSuffix(word, "...")
		k, ok := wordKinds[word]
		if !ok {
			return fmt.Errorf("%s: words: %s is no kind", r.name, word)
		}
		r.spec.words = append(r.spec.words, k)
	}
	// Without Words, each word that looks like a path counts as written.
	if r.Words == "" {
		r.spec.words, r.spec.repeat = []kind{kindGeneric}, true
	}
	// An expression that does not compile is an error. If it were skipped, the words that Opaque should catch would pass.
	for _, list := range [...]struct {
		from []string
		to   *[]*regexp.Regexp
	}{{r.Opaque, &r.opaque}, {r.Except, &r.except}} {
		for _, text := range list.from {
			re, err := regexp.Compile(text)
			if err != nil {
				return fmt.Errorf("%s: %w", r.name, err)
			}
			*list.to = append(*list.to, re)
		}
	}
	if r.Labels != "" {
		re, err := regexp.Compile(r.Labels)
		if err != nil {
			return fmt.Errorf("%s: %w", r.name, err)
		}
		r.labels = re
	}
	// A record with neither Words nor a number in Always says nothing about the program's words.
	r.spec.unknown = r.Words == "" && (r.Always == "" || r.Always == never || r.Always == none)
	for name, sub := range r.Sub {
		if sub == nil {
			sub = &Record{}
			r.Sub[name] = sub
		}
		sub.name, sub.file = r.name+" "+name, r.file
		if err := sub.compile(); err != nil {
			return err
		}
	}
	return nil
}

// sub returns the record of the subcommand that words begin with, and how many words name it: 1 or 2. If none is listed, it
// returns r and 0. A name of two words ("compose up") is tried before a name of one word ("compose").
func (r *Record) sub(words []string) (*Record, int) {
	for n := min(2, len(words)); n > 0; n-- {
		if s, ok := r.Sub[strings.Join(words[:n], " ")]; ok {
			return s, n
		}
	}
	return r, 0
}

//go:embed records/*.yaml
var recordFiles embed.FS

// index finds records by name. It is made without parsing YAML, since parsing all files would take longer than most commands run:
// a line without a blank in front begins a record, and the line "  names:" holds its other names.
type index struct {
	at map[string]span // by name and other name
}

// span is where a record is in the files. It is comparable because it is the key of recordCache.records.
type span struct {
	file     string
	name     string // the key of the record in the file
	from, to int    // byte offsets in the file; to is the first byte after the record
}

// builtIn is the index of the records that come with Pillion.
var builtIn = sync.OnceValue(func() index {
	ix := index{at: map[string]span{}}
	files, _ := fs.Glob(recordFiles, "records/*.yaml")
	for _, file := range files {
		data, _ := fs.ReadFile(recordFiles, file)
		ix.add(file, string(data))
	}
	return ix
})

// add puts the records of one file into the index. It relies on the layout of the lines; a test parses every record by its span.
func (ix index) add(file, text string) {
	var names []string
	var current span
	listing := false
	end := func(at int) {
		current.to = at
		for _, name := range names {
			ix.at[name] = current
		}
		names = nil
	}
	at := 0
	for line := range strings.Lines(text) {
		switch {
		case line[0] != ' ' && line[0] != '#' && line[0] != '\n':
			end(at)
			key, _, _ := strings.Cut(line, ":")
			key = strings.Trim(key, "'")
			current = span{file: path.Base(file), name: key, from: at}
			names, listing = []string{key}, false
		case strings.HasPrefix(line, "  names:"):
			listing = true
			names = append(names, strings.Fields(strings.Trim(strings.TrimSpace(line[len("  names:"):]), "'"))...)
		case listing && strings.HasPrefix(line, "    "):
			names = append(names, strings.Fields(strings.Trim(strings.TrimSpace(line), "'"))...)
		default:
			listing = false
		}
		at += len(line)
	}
	end(at)
}

// name finds the record of a program, also if the name has a version at its end (gcc-12) or a target machine in front
// (arm-none-eabi-gcc). Both count only if the record has the matching Variants, so that "foo2" is not taken for "foo".
func (ix index) name(program string) (span, bool) {
	if s, ok := ix.at[program]; ok {
		return s, true
	}
	bare := strings.TrimRight(program, "0123456789.")
	if bare != program {
		if s, ok := ix.at[strings.TrimSuffix(bare, "-")]; ok && variants(s) != "" {
			return s, true
		}
	}
	bare = strings.TrimSuffix(bare, "-")
	if i := strings.LastIndexByte(bare, '-'); i > 0 {
		if s, ok := ix.at[bare[i+1:]]; ok && variants(s) == "machine" {
			return s, true
		}
	}
	return span{}, false
}

// variants returns Record.Variants of the record at s, which it compiles for that.
func variants(s span) string { return loaded.get(s).Variants }

// loaded holds the records that have been compiled so far.
var loaded = recordCache{records: map[span]*Record{}}

// recordCache is shared by all sets and analyses. A record must not be changed after get has returned it.
type recordCache struct {
	mu      sync.Mutex
	records map[span]*Record // guarded by mu
}

// get returns the record at s and compiles it on the first use. A record that cannot be parsed is replaced by unknownRecord, so its
// program needs approval; a test parses every record, so that this does not happen unnoticed.
func (c *recordCache) get(s span) *Record {
	c.mu.Lock()
	defer c.mu.Unlock()
	if r, ok := c.records[s]; ok {
		return r
	}
	data, _ := fs.ReadFile(recordFiles, "records/"+s.file)
	r, err := parseRecord(string(data[s.from:s.to]), s)
	if err != nil {
		r = unknownRecord
	}
	c.records[s] = r
	return r
}

// parseRecord parses and compiles the record at s. text is the part of the file that s covers.
func parseRecord(text string, s span) (*Record, error) {
	r := &Record{}
	if err := r.decode(text, s.name); err != nil {
		return nil, err
	}
	r.name, r.file = s.name, s.file
	return r, r.compile()
}

// decode adds the fields that a YAML text sets to r. name is the key of the record in the text.
func (r *Record) decode(text, name string) error {
	one := map[string]*Record{name: r}
	d := yaml.NewDecoder(strings.NewReader(text))
	// A misspelled key would be ignored. For "opaque" or "ends" that would let more run without approval.
	d.KnownFields(true)
	if err := d.Decode(&one); err != nil {
		return err
	}
	if got := one[name]; got != nil && got != r {
		r.add(got)
	}
	return nil
}

// add copies the fields that o sets to r. Maps are merged: a list of options in both becomes one list, that of r first; a subcommand
// in both becomes that of o. It uses reflection, so that no field can be forgotten here.
func (r *Record) add(o *Record) {
	to, from := reflect.ValueOf(r).Elem(), reflect.ValueOf(o).Elem()
	for i := range to.NumField() {
		switch field := from.Field(i); {
		case !to.Type().Field(i).IsExported() || field.IsZero():
		case field.Kind() == reflect.Map && !to.Field(i).IsNil():
			for m := field.MapRange(); m.Next(); {
				value := m.Value()
				if have := to.Field(i).MapIndex(m.Key()); have.IsValid() && value.Kind() == reflect.String { // a list of options
					value = reflect.ValueOf(have.String() + " " + value.String())
				}
				to.Field(i).SetMapIndex(m.Key(), value)
			}
		default:
			to.Field(i).Set(field)
		}
	}
}

// correct returns the built-in record of a program, if there is one, changed by the user's own record. It decodes the built-in
// record again, because the one in loaded is shared.
func (s *Set) correct(name, own string) (*Record, error) {
	r := &Record{}
	if at, ok := builtIn().at[name]; ok {
		data, _ := fs.ReadFile(recordFiles, "records/"+at.file)
		if err := r.decode(string(data[at.from:at.to]), at.name); err != nil {
			return nil, err
		}
	}
	if err := r.decode(fmt.Sprintf("{%q: %s}", name, own), name); err != nil {
		return nil, err
	}
	r.name, r.file = name, "your configuration"
	return r, r.compile()
}

// unknownRecord is the record of programs without one: every word that looks like a path counts as written.
var unknownRecord = &Record{spec: spec{words: []kind{kindGeneric}, repeat: true, unknown: true}}

// record returns the record of a program; program is its name without the folder. The user's own records go before the built-in
// ones, also when they are found under another name of the program. The result is never nil.
func (s *Set) record(program string) *Record {
	if s != nil {
		if r, ok := s.own[program]; ok {
			return r
		}
	}
	if at, ok := builtIn().name(program); ok {
		return loaded.get(at)
	}
	return unknownRecord
}

// recordOf returns the record of a program from the set that analyzes c.
func recordOf(c *scan.Visit, program string) *Record { return c.Programs().(*Set).record(program) }
