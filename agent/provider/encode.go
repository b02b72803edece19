package provider

import (
	"bytes"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"hash/fnv"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/pillion-dev/pillion/tools/textutil"
)

// appendField appends ,"name": and leaves the comma out after an opening bracket and at the start of a fragment. Bodies are appended and
// not marshalled: encoding/json would encode and copy a history of megabytes at every step.
func appendField(b []byte, name string) []byte {
	b = appendComma(b)
	b = append(b, '"')
	b = append(b, name...)
	return append(b, '"', ':')
}

// appendComma appends a comma unless b is empty or ends with an opening bracket or a comma.
// It makes fragments composable: each begins without knowing whether something comes before it.
func appendComma(b []byte) []byte {
	if n := len(b); n > 0 {
		switch b[n-1] {
		case '{', '[', ',':
		default:
			b = append(b, ',')
		}
	}
	return b
}

func appendStringField(b []byte, name, value string) []byte {
	return textutil.AppendJSON(appendField(b, name), value)
}

func appendIntField(b []byte, name string, value int) []byte {
	return strconv.AppendInt(appendField(b, name), int64(value), 10)
}

func appendFloatField(b []byte, name string, value float64) []byte {
	return strconv.AppendFloat(appendField(b, name), value, 'g', -1, 64)
}

// appendDataURL appends "data:<mime>;base64,…" as a JSON string.
func appendDataURL(b []byte, f File) []byte {
	b = textutil.AppendJSON(b, "data:"+f.Mime+";base64,")
	b = b[:len(b)-1] // without the closing quote; base64 is appended to it, which needs no escapes
	b = base64.StdEncoding.AppendEncode(b, f.Data)
	return append(b, '"')
}

// appendBase64 appends data as a JSON string.
func appendBase64(b []byte, data []byte) []byte {
	b = append(b, '"')
	b = base64.StdEncoding.AppendEncode(b, data)
	return append(b, '"')
}

// objectInput is a call's arguments as a JSON object: providers, and model servers that parse the history, accept nothing else. Arguments
// that are not an object are kept under one key, so that the model sees what it wrote. input may be a JSON string that holds the model's
// words, when those were not JSON at all.
func objectInput(input json.RawMessage) []byte {
	trimmed := bytes.TrimSpace(input)
	if len(trimmed) == 0 {
		return []byte("{}")
	}
	if trimmed[0] == '{' && json.Valid(trimmed) {
		return trimmed
	}
	in := string(trimmed)
	// The text of a JSON string is quoted once, not twice.
	if s := rawText(input); in[0] == '"' {
		in = s
	}
	b := textutil.AppendJSON([]byte(`{"invalid_arguments":`), in)
	return append(b, '}')
}

// wrapArguments is what EventToolEnd carries: the arguments as written, {} for none.
// Several formats send no arguments at all for a call without parameters.
func wrapArguments(args string) string {
	if strings.TrimSpace(args) == "" {
		return "{}"
	}
	return args
}

// longArguments is the size of a call's arguments, in bytes, from which EventToolEnd does not repeat what its pieces have said: a file that
// is written whole would be in memory once more at each place that it passes.
const longArguments = 1 << 20

// endArguments is what EventToolEnd carries for arguments that the pieces of a call have said completely.
func endArguments(args []byte) string {
	if len(args) >= longArguments {
		return ""
	}
	return wrapArguments(string(args))
}

// callID makes an id acceptable to a provider: letters, digits, _ and -, at most max bytes. It is a function of id alone, so a call and
// its result, which are encoded at different times, still agree.
func callID(id string, max int) string {
	ok := id != "" && len(id) <= max
	for i := 0; ok && i < len(id); i++ {
		ok = wordByte(id[i]) || id[i] == '-'
	}
	if ok {
		return id
	}
	// max must be greater than 5, the length of "call_".
	return "call_" + hashID(id, min(16, max-5))
}

// hashID is n letters and digits made of id.
// FNV-128a gives the same in every process and version, which a random or seeded hash does not. It need not be secret.
func hashID(id string, n int) string {
	const digits = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
	h := fnv.New128a()
	_, _ = h.Write([]byte(id))
	sum := h.Sum(nil)
	out := make([]byte, n)
	for i := range out {
		out[i] = digits[int(sum[i%len(sum)]^byte(i/len(sum)))%len(digits)]
	}
	return string(out)
}

// isImage and isPDF sort attachments by the types that all providers take; other types are text or cannot be sent.
func isImage(mime string) bool {
	switch mime {
	case "image/png", "image/jpeg", "image/gif", "image/webp":
		return true
	}
	return false
}

func isPDF(mime string) bool { return mime == "application/pdf" }

// isText reports an attachment that can be sent as part of the prompt. Bytes that are not UTF-8 are not sent as text: JSON cannot hold
// them, and replacement characters would mislead the model.
func isText(f File) bool {
	return (strings.HasPrefix(f.Mime, "text/") || f.Mime == "application/json") && utf8.Valid(f.Data)
}

// fileText is what a model gets instead of an attachment that it cannot read: the text itself, or why the file is missing, so that it can
// tell the person.
func fileText(m Model, f File) string {
	name := f.Name
	if name == "" {
		name = f.Mime
	}
	switch {
	case isText(f):
		return "File " + name + ":\n" + string(f.Data)
	case isImage(f.Mime) && !m.Images:
		return "[image " + name + " left out: this model cannot see images]"
	case isPDF(f.Mime) && !m.PDF:
		return "[PDF " + name + " left out: this model cannot read PDF files]"
	}
	return "[file " + name + " left out: files of type " + f.Mime + " cannot be sent to a model]"
}

// sendable reports whether the model can be given the file itself.
func sendable(m Model, f File) bool {
	return isImage(f.Mime) && m.Images || isPDF(f.Mime) && m.PDF
}

// sameProvider reports whether the opaque state in m (signatures) was made by the provider that will read it; another provider refuses
// it.
func sameProvider(m Message, model Model) bool {
	// A message that names no model counts as written by the same provider.
	provider, _, _ := strings.Cut(m.Model, "/")
	return m.Model == "" || provider == model.Provider
}

// newCallID makes an id for a call that came without one. Its 80 random bits make it unique in the whole conversation, not only in one
// answer.
func newCallID() string { return "call_" + rand.Text()[:16] }

func appendIntValue(b []byte, v int) []byte { return strconv.AppendInt(b, int64(v), 10) }

func appendFloatValue(b []byte, v float64) []byte { return strconv.AppendFloat(b, v, 'g', -1, 64) }
