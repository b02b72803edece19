package web

import (
	"bytes"
	"fmt"
	"net/url"
	"strings"

	"github.com/JohannesKaufmann/html-to-markdown/v2/converter"
	"github.com/JohannesKaufmann/html-to-markdown/v2/plugin/base"
	"github.com/JohannesKaufmann/html-to-markdown/v2/plugin/commonmark"
	"github.com/JohannesKaufmann/html-to-markdown/v2/plugin/table"
	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

// maxDepth limits the nesting of the elements that are converted; deeper ones are left out. The conversion is recursive, and a
// hostile page could overflow the stack, which ends a Go process.
const maxDepth = 256

// render converts an HTML page to the requested format. The HTML format is the unchanged page, with its hidden parts: a model that
// asks for it works on the source.
func (p *Page) render(text string, f Format) (*Page, error) {
	doc, err := html.Parse(strings.NewReader(text))
	if err != nil {
		return nil, fmt.Errorf("%s is not HTML that can be read: %w", p.URL, err)
	}
	p.Title = title(doc)
	switch f {
	case HTML:
		p.Text = text
		return p, nil
	case Text:
		prune(doc, 0)
		p.Text = plain(doc)
		return p, nil
	}
	prune(doc, 0)
	c := converter.NewConverter(converter.WithPlugins(base.NewBasePlugin(), commonmark.NewCommonmarkPlugin(), table.NewTablePlugin()))
	domain := ""
	if u, err := url.Parse(p.URL); err == nil {
		domain = u.Scheme + "://" + u.Host
	}
	out, err := c.ConvertNode(doc, converter.WithDomain(domain))
	if err != nil {
		return nil, fmt.Errorf("%s could not be converted to Markdown (%w); use the format text or html", p.URL, err)
	}
	p.Text = string(bytes.TrimSpace(out))
	return p, nil
}

// title is the page's title on one line, or "". Only html and head are searched: an SVG in the body has title elements too.
func title(n *html.Node) string {
	if n.Type == html.ElementNode && n.DataAtom == atom.Title && n.FirstChild != nil {
		return strings.Join(strings.Fields(n.FirstChild.Data), " ")
	}
	for c := n.FirstChild; c != nil; c = c.NextSibling {
		if n.Type == html.DocumentNode || n.DataAtom == atom.Html || n.DataAtom == atom.Head {
			if t := title(c); t != "" {
				return t
			}
		}
	}
	return ""
}

// unseen are elements whose content a browser does not show as text of the page.
var unseen = map[atom.Atom]bool{atom.Script: true, atom.Style: true, atom.Noscript: true, atom.Iframe: true, atom.Object: true, atom.Embed: true, atom.Template: true,
	atom.Svg: true, atom.Canvas: true, atom.Link: true, atom.Meta: true, atom.Head: true, atom.Input: true, atom.Select: true, atom.Dialog: true}

// prune removes what a person would not see in a browser, because instructions for a model are often put into hidden text, and
// elements that are nested deeper than maxDepth. It does not read style sheets, so text that they hide stays.
func prune(n *html.Node, depth int) {
	for c := n.FirstChild; c != nil; {
		next := c.NextSibling
		if c.Type == html.CommentNode || c.Type == html.ElementNode && (depth >= maxDepth || unseen[c.DataAtom] || hidden(c)) {
			n.RemoveChild(c)
		} else {
			for i := range c.Attr { // images in data URLs are long and useless for the model
				if c.Attr[i].Key == "src" && strings.HasPrefix(strings.TrimSpace(strings.ToLower(c.Attr[i].Val)), "data:") {
					c.Attr[i].Val = ""
				}
			}
			prune(c, depth+1)
		}
		c = next
	}
}

// hidden reports whether an element is hidden by one of its own attributes. It knows only the usual spellings; there are more ways
// to hide text than can be listed.
func hidden(n *html.Node) bool {
	for _, a := range n.Attr {
		switch a.Key {
		case "hidden":
			return true
		case "style":
			s := strings.ToLower(strings.Join(strings.Fields(a.Val), ""))
			if strings.Contains(s, "display:none") || strings.Contains(s, "visibility:hidden") || strings.Contains(s, "font-size:0") || strings.Contains(s, "opacity:0;") || strings.HasSuffix(s, "opacity:0") {
				return true
			}
		}
	}
	return false
}

// plain is the text of a page, with a line for each block. Outside pre, white space is reduced to one blank as in a browser.
func plain(doc *html.Node) string {
	var b strings.Builder
	newline := func() {
		if s := b.String(); s != "" && !strings.HasSuffix(s, "\n") {
			b.WriteByte('\n')
		}
	}
	var walk func(n *html.Node, pre bool)
	walk = func(n *html.Node, pre bool) {
		if n.Type == html.TextNode {
			text := n.Data
			if !pre {
				text = strings.Join(strings.Fields(text), " ")
				if text != "" && strings.TrimLeft(n.Data, " \t\r\n") != n.Data {
					text = " " + text
				}
				if text != "" && strings.TrimRight(n.Data, " \t\r\n") != n.Data {
					text += " "
				}
			}
			b.WriteString(text)
			return
		}
		block := blocks[n.DataAtom]
		if block {
			newline()
		}
		for c := n.FirstChild; c != nil; c = c.NextSibling {
			walk(c, pre || n.DataAtom == atom.Pre)
		}
		if block || n.DataAtom == atom.Br {
			newline()
		}
	}
	walk(doc, false)
	lines := strings.Split(b.String(), "\n")
	out := lines[:0]
	for _, l := range lines {
		if l = strings.TrimRight(l, " \t\r"); strings.TrimSpace(l) != "" {
			out = append(out, strings.TrimPrefix(l, " "))
		}
	}
	return strings.Join(out, "\n")
}

// blocks are the elements that a browser shows on lines of their own, and table cells; without a break between cells their words
// would run together.
var blocks = map[atom.Atom]bool{atom.P: true, atom.Div: true, atom.Li: true, atom.Ul: true, atom.Ol: true, atom.Tr: true, atom.Table: true, atom.H1: true, atom.H2: true, atom.H3: true, atom.H4: true,
	atom.H5: true, atom.H6: true, atom.Pre: true, atom.Blockquote: true, atom.Section: true, atom.Article: true, atom.Header: true, atom.Footer: true, atom.Main: true, atom.Nav: true, atom.Aside: true,
	atom.Dt: true, atom.Dd: true, atom.Hr: true, atom.Figure: true, atom.Form: true, atom.Details: true, atom.Summary: true, atom.Td: true, atom.Th: true}
