package builtin

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"unicode/utf8"

	"github.com/pillion-dev/pillion/tools"
	"github.com/pillion-dev/pillion/tools/files"
)

func readSample(r io.Reader) ([]byte, error) {
	b := make([]byte, sampleSize)
	n := 0
	for n < len(b) {
		k, err := r.Read(b[n:])
		n += k
		if err == io.EOF {
			break
		}
		if err != nil {
			return nil, err
		}
	}
	return b[:n], nil
}

// streamText shows a page of a big file in little memory. Up to files.MaxText all of it is read, to count its lines
// and to know its hash; of bigger ones, which cannot be edited anyway, no more than the page.
func (e Env) streamText(ctx context.Context, at place, sample []byte, raw *files.Raw, from, limit int) (tools.Result, error) {
	if bytes.HasPrefix(sample, []byte{0xFF, 0xFE}) || bytes.HasPrefix(sample, []byte{0xFE, 0xFF}) {
		return e.readText(at, from, limit)
	}
	sample = bytes.TrimPrefix(sample, []byte("\xef\xbb\xbf"))
	sum := sha256.New()
	all := io.TeeReader(io.MultiReader(bytes.NewReader(sample), raw), sum)
	if raw.Size > files.MaxText {
		all = io.MultiReader(bytes.NewReader(sample), raw)
	}
	in := bufio.NewReaderSize(all, 256<<10)
	pg := &page{from: from, limit: limit}
	valid := true
	keep := make([]byte, 0, 4*readLine)
	for n := 0; ; n++ {
		if n%1024 == 0 && ctx.Err() != nil {
			return tools.Result{}, ctx.Err()
		}
		keep = keep[:0]
		any := false
		var err error
		for {
			var part []byte
			part, err = in.ReadSlice('\n')
			any = any || len(part) > 0
			keep = append(keep, part[:min(len(part), cap(keep)-len(keep))]...)
			if !errors.Is(err, bufio.ErrBufferFull) {
				break
			}
			if ctx.Err() != nil {
				return tools.Result{}, ctx.Err()
			}
		}
		if any {
			line := bytes.TrimSuffix(keep, []byte("\n"))
			if len(keep) < cap(keep) {
				valid = valid && utf8.Valid(line)
			}
			more := pg.line(strings.ToValidUTF8(string(line), "\uFFFD"))
			if !more && raw.Size > files.MaxText {
				pg.open = true
				break
			}
		}
		if err == io.EOF {
			break
		}
		if err != nil {
			return tools.Result{}, pathError(at.path, err)
		}
	}
	if !valid && raw.Size <= files.MaxText {
		return e.readText(at, from, limit) // the whole is needed to know its encoding
	}
	r, err := pg.result(at.path)
	if err != nil {
		return tools.Result{}, err
	}
	if raw.Size > files.MaxText {
		r.Output += fmt.Sprintf("\n\n(The file has %d bytes: too big to edit with the edit tools.)", raw.Size)
	} else {
		e.Tracker.Note(at.real, hex.EncodeToString(sum.Sum(nil)))
	}
	return r, nil
}

// mediaType knows the files a model can look at by their first bytes.
func mediaType(b []byte) string {
	has := func(s string) bool { return bytes.HasPrefix(b, []byte(s)) }
	switch {
	case has("\x89PNG\r\n\x1a\n"):
		return "image/png"
	case has("\xff\xd8\xff"):
		return "image/jpeg"
	case has("GIF87a"), has("GIF89a"):
		return "image/gif"
	case has("RIFF") && len(b) >= 12 && string(b[8:12]) == "WEBP":
		return "image/webp"
	case has("%PDF-"):
		return "application/pdf"
	}
	return ""
}

func readAttachment(path, mime string, sample []byte, raw *files.Raw) (tools.Result, error) {
	if raw.Size > readMedia {
		return tools.Result{}, &tools.Error{Kind: "too_big", Message: fmt.Sprintf("%s has %d bytes; at most %d can be attached. Make a smaller copy with the shell first.", path, raw.Size, readMedia)}
	}
	rest, err := io.ReadAll(io.LimitReader(raw, readMedia))
	if err != nil {
		return tools.Result{}, pathError(path, err)
	}
	what := "Image"
	if mime == "application/pdf" {
		what = "PDF"
	}
	out := what + " read successfully"
	return tools.Result{
		Output: out, Metadata: map[string]any{"preview": out, "truncated": false},
		Attachments: []tools.Attachment{{Mime: mime, Name: filepath.Base(path), Data: append(sample, rest...)}},
	}, nil
}
