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

const (
	pageLimit    = 5 * time.Second // a turn waits no longer for all pages together
	pageFresh    = time.Hour       // then a page is looked at again; until then prompts stay the same
	pageAgain    = 2 * time.Minute // after a failure
	maxPages     = 10              // of one configuration
	maxPageBytes = 64 << 10        // as of a file
)

// instructionPages keeps what was fetched, so that a turn waits for a page once.
type instructionPages struct {
	version string // of this program, for the pages' servers
	mu      sync.Mutex
	kept    map[string]instructionPage // guarded by mu; by address
	now     func() time.Time           // nil: the clock
}

type instructionPage struct {
	text  string
	until time.Time
	bad   bool
}

// texts fetches what is not known, all at once. failed is told once of a page that fails, until it has worked again.
func (p *instructionPages) texts(c *config.Config, addresses []string, failed func(address string, err error)) (blocks []string) {
	if len(addresses) == 0 {
		return nil
	}
	now := time.Now
	if p.now != nil {
		now = p.now
	}
	addresses = once(addresses)
	addresses = addresses[:min(len(addresses), maxPages)]
	ctx, cancel := context.WithTimeout(context.Background(), pageLimit)
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
		wait.Go(func() {
			page, err := client.Fetch(ctx, web.Request{URL: address, Timeout: pageLimit})
			next := instructionPage{text: had.text, until: now().Add(pageFresh)} // what was read before stays
			switch {
			case err != nil:
				next.until, next.bad = now().Add(pageAgain), true
			case page.Text == "":
				err, next.bad = fmt.Errorf("there is no text"), true
			default:
				next.text = bounded(strings.TrimSpace(page.Text), maxPageBytes)
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
	for _, address := range addresses {
		if text := p.kept[address].text; text != "" {
			blocks = append(blocks, "Instructions from: "+address+"\n"+text)
		}
	}
	return blocks
}

// once leaves out what is there already.
func once(list []string) (out []string) {
	for _, s := range list {
		if !slices.Contains(out, s) {
			out = append(out, s)
		}
	}
	return out
}

// bounded cuts a text at the end of a line.
func bounded(text string, most int) string {
	if len(text) <= most {
		return text
	}
	text = strings.ToValidUTF8(text[:most], "")
	if i := strings.LastIndexByte(text, '\n'); i > most/2 {
		text = text[:i]
	}
	return text + "\n(The page goes on; fetch it for the rest.)"
}
