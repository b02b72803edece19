package agent

import (
	"bytes"
	"cmp"
	"fmt"
	"image"
	"image/color"
	_ "image/gif" // GIF, JPEG and PNG: formats that providers accept
	"image/jpeg"
	"image/png"
	"slices"
	"strings"

	"github.com/pillion-dev/pillion/agent/provider"
)

const (
	// longestEdge is the size in pixels to which providers scale a picture down themselves, so a larger picture only costs time. Above 8000
	// pixels they refuse it. The figures are Anthropic's, the strictest of the supported providers.
	longestEdge = 1568
	refusedEdge = 7000     // pixels; a larger picture is scaled, whatever its size in bytes
	maxPicture  = 3 << 20  // bytes; base64 adds a third, and Anthropic refuses more than 5 MB
	maxPixels   = 90 << 20 // pixels; a larger picture is not decoded: that would take more than 400 MB
)

// fitPictures scales the pictures of a part down to what every provider accepts, and replaces one that cannot be scaled by a note. Call it
// before the part is stored: a picture that a provider refuses would be sent and refused again with every later request of the session.
func fitPictures(p provider.Part) provider.Part {
	var kept []provider.File
	for _, f := range p.Files {
		small, note := fitPicture(f)
		if note != "" {
			if p.Text != "" {
				p.Text += "\n\n"
			}
			p.Text += note
			continue
		}
		kept = append(kept, small)
	}
	// A file part without files becomes a text part: the note.
	if p.Files = kept; p.Type == provider.PartFile && len(kept) == 0 {
		p.Type = provider.PartText
	}
	return p
}

// fitPicture returns a picture that providers accept, or a note for the model in its place. Scaling may change the file's type.
func fitPicture(f provider.File) (small provider.File, note string) {
	c, format, err := image.DecodeConfig(bytes.NewReader(f.Data))
	if w, h := webpSize(f.Data); err != nil && w > 0 {
		c.Width, c.Height, err = w, h, nil // it is not decoded, so a large one cannot be scaled
	}
	if err != nil {
		return f, "" // not a picture, or an unknown format: leave it to the provider
	}
	if c.Width <= refusedEdge && c.Height <= refusedEdge && len(f.Data) <= maxPicture {
		return f, ""
	}
	note = fmt.Sprintf("(The picture %s (%d×%d pixels) is too large to be sent. Scale it down, for example to %d pixels, and read it again.)", f.Name, c.Width, c.Height, longestEdge)
	// The sizes are from the picture's header, and a header of a few bytes can claim any number of pixels.
	if c.Width*c.Height > maxPixels {
		return f, note
	}
	full, _, err := image.Decode(bytes.NewReader(f.Data))
	if err != nil {
		return f, note
	}
	var out bytes.Buffer
	// PNG keeps text on screenshots sharp; a GIF becomes its first frame.
	if scaled := scaleDown(full, longestEdge); format == "png" || format == "gif" {
		err = png.Encode(&out, scaled)
		f.Mime = "image/png"
	} else {
		err = jpeg.Encode(&out, scaled, &jpeg.Options{Quality: 85})
		f.Mime = "image/jpeg"
	}
	if err != nil || out.Len() > maxPicture {
		return f, note
	}
	f.Data = out.Bytes()
	return f, ""
}

// webpSize reads the size of a WebP picture in pixels from its first chunk (RFC 9649); zero for another format.
func webpSize(b []byte) (w, h int) {
	if len(b) < 30 || string(b[:4]) != "RIFF" || string(b[8:12]) != "WEBP" {
		return 0, 0
	}
	number := func(at, n int) (v int) {
		for i := range n {
			v |= int(b[at+i]) << (8 * i)
		}
		return v
	}
	switch string(b[12:16]) {
	case "VP8X": // extended: 24 bits each, less one
		return number(24, 3) + 1, number(27, 3) + 1
	case "VP8L": // lossless: 14 bits each, less one, behind a signature
		return number(21, 4)&0x3fff + 1, number(21, 4)>>14&0x3fff + 1
	case "VP8 ": // lossy: 14 bits each, behind the frame's tag and start code
		return number(26, 2) & 0x3fff, number(28, 2) & 0x3fff
	}
	return 0, 0
}

// scaleDown returns the picture with its longer edge at most edge pixels; a smaller picture is returned unchanged. Each pixel is the mean
// of those it replaces (a box filter): nearest-neighbour scaling would make text on a screenshot unreadable.
func scaleDown(src image.Image, edge int) image.Image {
	b := src.Bounds()
	long := max(b.Dx(), b.Dy())
	if long <= edge {
		return src
	}
	w, h := max(1, b.Dx()*edge/long), max(1, b.Dy()*edge/long)
	dst := image.NewNRGBA(image.Rect(0, 0, w, h))
	for y := range h {
		y0, y1 := b.Min.Y+y*b.Dy()/h, b.Min.Y+(y+1)*b.Dy()/h
		for x := range w {
			x0, x1 := b.Min.X+x*b.Dx()/w, b.Min.X+(x+1)*b.Dx()/w
			var r, g, bl, a, n uint64
			// At least one source pixel for each pixel, where rounding leaves none.
			for sy := y0; sy < max(y1, y0+1); sy++ {
				for sx := x0; sx < max(x1, x0+1); sx++ {
					cr, cg, cb, ca := src.At(sx, sy).RGBA()
					r, g, bl, a, n = r+uint64(cr), g+uint64(cg), bl+uint64(cb), a+uint64(ca), n+1
				}
			}
			dst.Set(x, y, color.RGBA64{R: uint16(r / n), G: uint16(g / n), B: uint16(bl / n), A: uint16(a / n)})
		}
	}
	return dst
}

// refused names the files that no provider has accepted yet; nil where there is none. Without leaving them out a refused file is refused
// with every later request, and the session cannot continue.
func (h *history) refused(why string) *RefusalData {
	d := RefusalData{Why: why}
	for _, m := range h.messages[min(h.accepted, len(h.messages)):] {
		before := len(d.Files)
		for _, p := range m.Parts {
			for _, f := range p.Files {
				d.Files = append(d.Files, cmp.Or(f.Name, f.Mime))
			}
		}
		if len(d.Files) > before {
			d.Messages = append(d.Messages, m.ID)
		}
	}
	if len(d.Files) == 0 {
		return nil
	}
	return &d
}

// leaveOut replaces the refused files by a note with the reason. Loading a session applies stored EventRefusal events with it as well, so the
// result must depend on d alone. It builds a new list, because messages never change.
func (h *history) leaveOut(d RefusalData) {
	out := slices.Clone(h.messages)
	for i, m := range out {
		if !slices.Contains(d.Messages, m.ID) {
			continue
		}
		parts := slices.Clone(m.Parts)
		for j, p := range parts {
			if len(p.Files) == 0 {
				continue
			}
			for _, f := range p.Files {
				p.Text = strings.TrimLeft(p.Text+"\n\n"+fmt.Sprintf("(The file %s, %s, was left out: the provider refused the request with it: %s)", cmp.Or(f.Name, f.Mime), f.Mime, d.Why), "\n")
			}
			if p.Files = nil; p.Type == provider.PartFile {
				p.Type = provider.PartText
			}
			parts[j] = p
		}
		out[i].Parts = parts
	}
	h.messages = out
}
