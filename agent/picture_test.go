package agent

import (
	"bytes"
	"context"
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
