package app

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/pillion-dev/pillion/sidecar/config"
	"github.com/pillion-dev/pillion/tools/web"
)

// Limits of instruction pages, the web addresses in "instructions". Pages are not fetched for every turn: besides the delay, a prompt that
// stays the same is cached by model providers.
const (
	pagesTimeout   = 5 * time.Second // how long a turn waits for all pages together
	pageMaxAge     = time.Hour       // after that a page is fetched again
	pageRetryAfter = 2 * time.Minute // pause after a failure, so that not every turn waits for a dead address
	maxPages       = 10              // pages of one configuration
	maxPageBytes   = 64 << 10        // bytes of a page; the same limit as for a file
)

// instructionPages fetches pages and keeps them, so that only one turn waits for a page. mu is not held during a fetch.
type instructionPages struct {
	version string // Pillion's version, sent to the pages' servers
	mu      sync.Mutex
	kept    map[string]instructionPage // guarded by mu; by address
	now     func() time.Time           // nil: the clock
}

// instructionPage is the last state of a page.
type instructionPage struct {
	text  string
	until time.Time // the time from which it is fetched again
	bad   bool      // the last fetch failed, and the person was told
}

// texts returns the pages as blocks of the system prompt. It fetches unknown and expired pages, all concurrently. A page that fails keeps
// its earlier text; failed is called only for the first failure, until a fetch has succeeded again.
func (p *instructionPages) texts(c *config.Config, addresses []string, failed func(address string, err error)) (blocks []string) {
	if len(addresses) == 0 {
		return nil
	}
	now := time.Now
	if p.now != nil {
		now = p.now
	}
	// A page that two settings name must not be in the prompt twice.
	addresses = withoutRepeats(addresses)
	addresses = addresses[:min(len(addresses), maxPages)]
	ctx, cancel := context.WithTimeout(context.Background(), pagesTimeout)
	defer cancel()
	client := web.New(web.Options{Version: p.version, Allow: c.Web.Allow})
	var wait sync.WaitGroup
	for _, address := range addresses {
		p.mu.Lock()
		had, ok := p.kept[address]
		p.mu.Unlock()
		if ok && now().Before(had.until) {
			continue
		}
		// Concurrently, so that pagesTimeout limits the turn's wait for any number of pages.
		wait.Go(func() {
			page, err := client.Fetch(ctx, web.Request{URL: address, Timeout: pagesTimeout})
			next := instructionPage{text: had.text, until: now().Add(pageMaxAge)} // an earlier text is kept when this fetch fails
			switch {
			case err != nil:
				next.until, next.bad = now().Add(pageRetryAfter), true
			case page.Text == "":
				err, next.bad = fmt.Errorf("the page has no text"), true
			default:
				next.text = truncated(strings.TrimSpace(page.Text), maxPageBytes)
			}
			if err != nil && !had.bad {
				failed(address, err)
			}
			p.mu.Lock()
			defer p.mu.Unlock()
			if p.kept == nil {
				p.kept = map[string]instructionPage{}
			}
			p.kept[address] = next
		})
	}
	wait.Wait()
	p.mu.Lock()
	defer p.mu.Unlock()
	// In the order of the configuration: an order that depends on which page came first would invalidate providers' prompt caches.
	for _, address := range addresses {
		if text := p.kept[address].text; text != "" {
			blocks = append(blocks, "Instructions from: "+address+"\n"+text)
		}
	}
	return blocks
}

// withoutRepeats returns the list with each entry once, in order.
func withoutRepeats(list []string) (out []string) {
	for _, s := range list {
		if !slices.Contains(out, s) {
			out = append(out, s)
		}
	}
	return out
}

// truncated cuts a text at the end of a line, to at most most bytes, and tells the model so. If that would lose more than half of the text,
// it cuts inside the line, at a character.
func truncated(text string, most int) string {
	if len(text) <= most {
		return text
	}
	text = strings.ToValidUTF8(text[:most], "")
	// Else a single long line would lose all of its text.
	if i := strings.LastIndexByte(text, '\n'); i > most/2 {
		text = text[:i]
	}
	return text + "\n(The page continues; fetch it for the rest.)"
}
