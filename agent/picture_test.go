package agent

import (
	"bytes"
	"context"
	"encoding/base64"
	"image"
	"image/color"
	"image/png"
	"strings"
	"testing"

	"github.com/pillion-dev/pillion/agent/provider"
)

func picture(t *testing.T, w, h int) []byte {
	t.Helper()
	img := image.NewPaletted(image.Rect(0, 0, w, h), color.Palette{color.White, color.Black})
	for i := range img.Pix {
		img.Pix[i] = uint8(i / 7 % 2)
	}
	var b bytes.Buffer
	if err := (&png.Encoder{CompressionLevel: png.BestSpeed}).Encode(&b, img); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// A picture that a provider would refuse is scaled before it is stored: it would be refused with every later request.
func TestLargePicturesAreScaledBeforeTheyAreStored(t *testing.T) {
	h := newHarness(t, says("seen"))
	s := h.session()
	parts := []provider.Part{{Type: provider.PartText, Text: "look"}, {Type: provider.PartFile, Files: []provider.File{{Mime: "image/png", Name: "wide.png", Data: picture(t, 8200, 40)}}}}
	if end, err := s.Prompt(context.Background(), Prompt{Parts: parts}); err != nil || end.Stop != TurnEnd {
		t.Fatal(end, err)
	}
	sent := h.model.seen()[0].Messages[0].Parts[1].Files
	c, _, err := image.DecodeConfig(bytes.NewReader(sent[0].Data))
	if err != nil || c.Width != longestEdge || c.Height != 40*longestEdge/8200 {
		t.Errorf("%+v %v", c, err)
	}
	h.consistent(s)

	small := picture(t, 100, 50)
	if got := fitPictures(provider.Part{Files: []provider.File{{Data: small}}}); !bytes.Equal(got.Files[0].Data, small) {
		t.Error("a small picture was changed")
	}
	broken := append(bytes.Clone(picture(t, 8200, 8)[:60]), "rest"...)
	if got := fitPictures(provider.Part{Type: provider.PartFile, Files: []provider.File{{Name: "b.png", Data: broken}}}); len(got.Files) != 0 || got.Type != provider.PartText || !strings.Contains(got.Text, "b.png") {
		t.Errorf("%+v", got)
	}
	text := provider.File{Name: "a.pdf", Data: []byte("%PDF-1.7")}
	if got := fitPictures(provider.Part{Files: []provider.File{text}}); len(got.Files) != 1 {
		t.Error("what is no picture stays")
	}
}

// A WebP picture cannot be scaled here: a large one is a note instead of a request that is refused. Both small ones are files of libwebp.
func TestALargeWebPIsANote(t *testing.T) {
	decode := func(text string) []byte {
		b, err := base64.StdEncoding.DecodeString(text)
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	lossy, lossless := decode("UklGRiIAAABXRUJQVlA4IBYAAAAwAQCdASoBAAEADsD+JaQAA3AAAAAA"), decode("UklGRhoAAABXRUJQVlA4TA0AAAAvAAAAEAcQERGIiP4HAA==")
	extended := []byte("RIFF\x16\x00\x00\x00WEBPVP8X\x0a\x00\x00\x00\x00\x00\x00\x00\x27\x23\x00\x27\x23\x00")
	large := func(b []byte, at int, bytes ...byte) []byte {
		return append(append(append([]byte(nil), b[:at]...), bytes...), b[at+len(bytes):]...)
	}
	for name, c := range map[string]struct {
		data []byte
		w, h int
	}{
		"lossy": {lossy, 1, 1}, "lossless": {lossless, 1, 1}, "extended": {extended, 9000, 9000},
		"lossy, large": {large(lossy, 26, 0x28, 0x23, 0x10, 0x27), 9000, 10000}, "lossless, large": {large(lossless, 21, 0xff, 0xff, 0xff, 0x0f), 16384, 16384},
		"cut": {lossy[:20], 0, 0}, "another format": {picture(t, 4, 4), 0, 0},
	} {
		if w, h := webpSize(c.data); w != c.w || h != c.h {
			t.Errorf("%s: %d×%d", name, w, h)
		}
		got := fitPictures(provider.Part{Type: provider.PartFile, Files: []provider.File{{Name: "p.webp", Data: c.data}}})
		if noted := strings.Contains(got.Text, "p.webp ("); noted != (c.w > refusedEdge) || noted == (len(got.Files) > 0) {
			t.Errorf("%s: %+v", name, got.Text)
		}
	}
}
