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

// Record says what one program, or one of its subcommands, does with its words. The files records/*.yaml hold one for
// each program; a test reads them all.
//
// Lists of options and words are written with blanks between them. An option is spelled as a person types it: -o,
// --output, and -output for programs of style single.
// The zero value of Reads means that the program changes something; decode refuses keys that are not a field, since a misspelled
// one would silently allow more.
type Record struct {
	// How the program is called and how its options are spelled.
	Names    string            `yaml:"names" json:"names"`       // other names of the program
	Variants string            `yaml:"variants" json:"variants"` // "version": also gcc-12; "machine": also arm-none-eabi-gcc
	Style    string            `yaml:"style" json:"style"`       // how options are spelled: "" (getopt), "single" (-output), "driver" (-I/x, -Wl,…)
	Fold     bool              `yaml:"fold" json:"fold"`         // options may be spelled with any letters, small or capital
	Options  map[string]string `yaml:"options" json:"options"`   // by kind, see optionKinds
	Unlisted string            `yaml:"unlisted" json:"unlisted"` // "text": options that are not listed name no files
	Words    string            `yaml:"words" json:"words"`       // kinds of the words that are not options, in order; the last may end in "..."

	// Whether it changes anything. A program with none of these counts as one that does.
	Reads      bool    `yaml:"reads" json:"reads"`             // it changes nothing, but for the options in Ends
	Ends       string  `yaml:"ends" json:"ends"`               // options with which it does change, run or load something
	WritesWith *string `yaml:"writes-with" json:"writes-with"` // its words are written with one of these options only
	ReadsWith  string  `yaml:"reads-with" json:"reads-with"`   // its words are only read with one of these options
	Version    string  `yaml:"version" json:"version"`         // alone, one of these only prints; no project file decides what runs
	Follows    string  `yaml:"follows" json:"follows"`         // options with which it follows links below folders
	Prints     string  `yaml:"prints" json:"prints"`           // options with which it prints files below folders; "always"

	// What it starts or loads besides itself, and what it leaves behind for later.
	Runs     string            `yaml:"runs" json:"runs"`         // its words are another call: "command"; "script" for a string that a shell gets; "package" for one that may be fetched
	Skip     int               `yaml:"skip" json:"skip"`         // how many words are before that call, or of a subcommand's name; Words says what they are
	Dashes   bool              `yaml:"dashes" json:"dashes"`     // that call is after --, where there is one
	Assigns  bool              `yaml:"assigns" json:"assigns"`   // NAME=value words are before that call
	InFront  map[string]string `yaml:"in-front" json:"in-front"` // words that are put before that call: with these options, or where its first word ends so; "*": always
	Prefix   string            `yaml:"prefix" json:"prefix"`     // what is before this sign in the first word of that call is not part of it
	Packages bool              `yaml:"packages" json:"packages"` // its first word may be the name of a package's program
	Unsure   string            `yaml:"unsure" json:"unsure"`     // why it cannot be said what a call does, with the program as the subject; it is asked as a whole
	Changes  string            `yaml:"changes" json:"changes"`   // files that it changes, where it has subcommands with any word, without being given their names: ~/…, or below the worktree

	Starts  string   `yaml:"starts" json:"starts"`           // options whose value is, or names, a program or code that is loaded
	Opaque  []string `yaml:"opaque" json:"opaque"`           // regular expressions: a word that matches may run or load something else
	Because string   `yaml:"because" json:"because"`         // what a word of Opaque does, for the person who is asked; empty: it may run or load something else
	Except  []string `yaml:"except" json:"except"`           // regular expressions: words that Opaque does not count for
	Hooks   string   `yaml:"hooks" json:"hooks"`             // words with which it writes git hooks; "* a b": always, but for a and b
	Labels  string   `yaml:"labels" json:"labels"`           // a regular expression: words that look like paths and are none
	Keeps   string   `yaml:"keeps" json:"keeps"`             // what it writes: "content": modes and times only; "sources": made of the files it is given
	Editor  bool     `yaml:"editor" json:"editor"`           // its code names files as bare words
	Obeys   bool     `yaml:"obeys-input" json:"obeys-input"` // it takes commands from its standard input
	Values  string   `yaml:"values" json:"values"`           // an interpreter's options with a value before the script
	Code    string   `yaml:"code" json:"code"`               // letters of an interpreter's options that carry code
	Shell   bool     `yaml:"shell" json:"shell"`             // it runs scripts in a language like bash's

	// What a grant covers, and what a person is told that the call does at most.
	Always string            `yaml:"always" json:"always"` // how many words of a call the grant from "always" keeps; "never"; "none"
	Effect map[string]string `yaml:"effect" json:"effect"` // options that do more than the program does without them, by class: see stronger
	Base   string            `yaml:"base" json:"base"`     // the class of the program without such options

	// The claim that the option lists name everything, on which running unasked rests where commands cannot be contained.
	Complete bool               `yaml:"complete" json:"complete"` // every option is listed: an unknown one is opaque
	Sub      map[string]*Record `yaml:"sub" json:"sub"`           // subcommands, of one word or two

	name, file string // where it is written
	known      bool
	spec       spec
	// Compiled from Opaque, Except and Labels.
	opaque []*regexp.Regexp
	except []*regexp.Regexp
	labels *regexp.Regexp
}

// spec is what the words of a call mean: its options with the kinds of their values, and the kinds of the other words.
// It is compiled from a Record once and copied by value; the slices of a copy must not be changed in place.
type spec struct {
	options  []option
	words    []kind
	repeat   bool // the last kind counts for all words that follow
	single   bool // long options have one dash: go, openssl, java
	driver   bool // options are whole words or glued to their value, never clusters of letters: compilers
	fold     bool // options are spelled with any letters, small or capital: tsc
	unlisted bool // options that are not listed name no files
	unknown  bool // nothing is said of the words: there is no record, or one without Words and without a number in Always
	complete bool // every option is listed
}

// option is one option with its dashes, and what its value is.
type option struct {
	name  string
	kind  kind
	first bool // stands for the first word: grep -e
	glued bool // takes a value after "=" only: the next word is none
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
	kindDir            // a folder in which the rest runs
	kindFlag           // no value
	kindSelf           // a text with words for the program itself
	kindCall           // with all that follows, another call
	kindMount          // a mount of a container, whose one side is of this machine
	kindListRead       // key=path,key=path: paths that are read
	kindListWrite      // the same, written
	kindForm           // key=@path
	kindFrom           // a path that is read, unless it names another machine
	kindTo             // a path that is written, unless it names another machine
	kindRemote         // a repository: a path where it looks like one
	kindTree           // a path that is read, if it looks like one, by a program that refuses paths outside the worktree
	kindTreeWrite      // the same, written
)

// never, as Record.Always, says that "always" would remember too much: what the program does depends on all its words.
// "always" is not offered for a call of it.
const never = "never"

// none, as Record.Always, says that no grant covers the program, not even one of the exact text: any word makes it run other
// code.
const none = "none"

// optionKinds are the keys of Options. "first" and "optional" list options that are in another list too.
// An option is in one of these lists; a test compares them for repetitions.
var optionKinds = map[string]kind{"write": kindWrite, "read": kindRead, "path": kindGeneric, "look": kindLook, "script": kindScript,
	"dir": kindDir, "self": kindSelf, "call": kindCall, "mount": kindMount, "list-read": kindListRead, "list-write": kindListWrite, "form": kindForm,
	"text": kindText, "flag": kindFlag}

// optionOrder is the order of the kinds: an abbreviation means the first option that it fits, and doubt falls on what is written.
var optionOrder = [...]string{"write", "list-write", "mount", "read", "list-read", "form", "path", "look", "script", "self", "call", "dir", "text", "flag"}

// Words of no option can be of these kinds only: a script is always named by an option or by Runs. "dir" is for words before a
// call, see Skip.
var wordKinds = map[string]kind{"text": kindText, "read": kindRead, "write": kindWrite, "path": kindGeneric, "look": kindLook, "dir": kindDir,
	"from": kindFrom, "to": kindTo, "remote": kindRemote, "tree": kindTree, "tree-write": kindTreeWrite}

// compile prepares a record for use.
// The error names the record: it is shown for a person's own records in the configuration.
func (r *Record) compile() error {
	r.known = true
	r.spec.single, r.spec.driver, r.spec.fold, r.spec.complete = r.Style == "single", r.Style == "driver", r.Fold, r.Complete
	r.spec.unlisted = r.Unlisted == "text"
	// "first": the option's value is what the first word would be. "optional": its value is glued on with "=", or there is none.
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
	// Nothing said about the words: each one that looks like a path counts as written.
	if r.Words == "" {
		r.spec.words, r.spec.repeat = []kind{kindGeneric}, true
	}
	// An expression that does not compile is an error of the record, never one that matches nothing: Opaque would then be silent.
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
	// Without kinds for its words, and without a number of them to remember, the record says nothing about paths.
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

// sub is the record of the subcommand that words begin with, and how many of them name it. The program's own record
// stands for what is not listed.
// The longer name counts: "docker compose" has subcommands with two words.
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

// index finds records by name. Nothing is parsed to make it: a record begins with a line that does not begin with a
// blank, and its other names are the line "  names:". Parsing all files would take longer than most commands run.
type index struct {
	at map[string]span // by name and other name
}

// span is where a record is in the files. It is comparable, and serves as the key of loaded.
type span struct {
	file     string
	name     string // the one the record is written under
	from, to int    // bytes of the file
}

// builtIn is the index of the records that come with the program.
var builtIn = sync.OnceValue(func() index {
	ix := index{at: map[string]span{}}
	files, _ := fs.Glob(recordFiles, "records/*.yaml")
	for _, file := range files {
		data, _ := fs.ReadFile(recordFiles, file)
		ix.add(file, string(data))
	}
	return ix
})

// add reads the lines of one file. It relies on their layout; a test parses every record by the span found here.
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

// name is the one under which a program's record is found: the program's own, or the one that a version after it or a
// machine before it leaves (gcc-12, arm-none-eabi-gcc).
// A version counts only where the record says Variants, so that "foo2" is not taken for "foo".
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

// variants is the record's field of that name; it compiles the record.
func variants(s span) string { return loaded.get(s).Variants }

// loaded are the records that have been compiled.
var loaded = recordCache{records: map[span]*Record{}}

// recordCache is shared by all sets and analyses; a record is never changed after get has returned it.
type recordCache struct {
	mu      sync.Mutex
	records map[span]*Record // guarded by mu
}

// get compiles a record on its first use. A record that cannot be read knows nothing, so its program is asked; a test
// reads them all.
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

// parseRecord reads one record out of the text of its span.
func parseRecord(text string, s span) (*Record, error) {
	r := &Record{}
	if err := r.decode(text, s.name); err != nil {
		return nil, err
	}
	r.name, r.file = s.name, s.file
	return r, r.compile()
}

// decode adds what a text says of a program to its record.
func (r *Record) decode(text, name string) error {
	one := map[string]*Record{name: r}
	d := yaml.NewDecoder(strings.NewReader(text))
	// A misspelled key would silently say nothing, and for "opaque" or "ends" that would allow more.
	d.KnownFields(true)
	if err := d.Decode(&one); err != nil {
		return err
	}
	if got := one[name]; got != nil && got != r {
		r.add(got)
	}
	return nil
}

// add takes over the fields that another record sets. Its lists of options come after those that are there.
// It goes over the fields by reflection, so that a field cannot be forgotten here.
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

// correct is the record of a program with a person's own on top.
// The built-in record is decoded again: the shared one must not change.
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

// unknownRecord stands for programs that nothing is known of: all their words may be paths that they write.
var unknownRecord = &Record{spec: spec{words: []kind{kindGeneric}, repeat: true, unknown: true}}

// record is what is known of a program, by its name without a folder.
// A person's own records come first, also those under another name of the program. It is never nil.
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

// recordOf is what the set that looks at c knows of a program.
func recordOf(c *scan.Visit, program string) *Record { return c.Programs().(*Set).record(program) }

// title says where it is written what a call does: "git.yaml: git clean". Empty when nothing is known.
func (r *Record) title(args []scan.Word) string {
	if !r.known {
		return ""
	}
	var words []string
	for _, a := range args {
		if !strings.HasPrefix(a.Text, "-") && len(words) < 2 {
			words = append(words, a.Text)
		}
	}
	sub, _ := r.sub(words)
	return sub.file + ": " + sub.name
}
