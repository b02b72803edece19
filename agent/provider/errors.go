package provider

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"syscall"
	"time"

	"github.com/pillion-dev/pillion/tools/guard"
)

const (
	maxBackoff = 30 * time.Second
	// maxRetryAfter bounds the wait that a provider may ask for. Whether to wait longer is for the person to decide.
	maxRetryAfter = time.Hour
	// absurdRetryAfter is where a wait is taken for a wrong clock or a typo, and ignored.
	absurdRetryAfter = 24 * time.Hour
	// maxErrorBody is how much of a failure's body is read, in bytes. A proxy's error page may have no end.
	maxErrorBody = 64 << 10
)

// errNoAPI is a web page where an API was expected.
var errNoAPI = errors.New("the server answered with a web page")

// cutBy is the error of a stream that ended early: its cause, where that says more than errCut does.
func cutBy(cause error) error {
	if errors.Is(cause, errEventTooLong) || errors.Is(cause, errBadEvent) {
		return cause
	}
	return errCut
}

// fail turns err into the *Error that the caller gets. nil stays nil, and an error of emit is returned unchanged. Every *Error passes
// here, so this is the one place where secrets are removed from messages.
func (b *base) fail(ctx context.Context, model string, err error) error {
	if err == nil {
		return nil
	}
	var fromEmit emitError
	if errors.As(err, &fromEmit) {
		return fromEmit.err
	}
	var e *Error
	if !errors.As(err, &e) {
		e = b.explain(ctx, model, err)
	}
	// Providers quote a wrong key in their message.
	e.Message = b.redact(e.Message)
	return e
}

// explain turns a failure into an *Error with the next step for a person. The order of its cases matters: a cancelled ctx also looks like
// a network failure, so it comes first.
func (b *base) explain(ctx context.Context, model string, err error) *Error {
	id := b.cfg.ID
	if ctx.Err() != nil {
		// run cancels with one of these causes when one of its limits is reached; then the person has not cancelled anything.
		if cause := context.Cause(ctx); cause == errIdle || cause == errLate {
			silence := b.cfg.Idle
			if cause == errLate {
				silence = b.cfg.First
			}
			return &Error{Kind: ErrNetwork, Message: fmt.Sprintf("%s sent nothing for %s; the connection was closed (the provider's options.timeout says how long is too long)", id, silence)}
		}
		return &Error{Kind: ErrCanceled, Message: "cancelled", Err: ctx.Err()}
	}
	var api *apiFailure
	if errors.As(err, &api) {
		return b.classify(model, api)
	}
	var signIn errCloudSignIn
	switch {
	case errors.As(err, &signIn) && b.cfg.Cloud == CloudVertex:
		return &Error{Kind: ErrAuth, Message: fmt.Sprintf("%s: not signed in to Google Cloud: %s; set GOOGLE_VERTEX_PROJECT and sign in with gcloud auth application-default login", id, shorten(err.Error()))}
	case errors.As(err, &signIn), b.cfg.Cloud == CloudBedrock && strings.Contains(err.Error(), "credential"):
		return &Error{Kind: ErrAuth, Message: fmt.Sprintf("%s: not signed in to AWS: %s; set AWS_REGION and AWS_BEARER_TOKEN_BEDROCK, or sign in with the AWS CLI (aws sso login)", id, shorten(err.Error()))}
	case errors.Is(err, errNoAPI):
		// The usual mistake is in the address: it is a gateway's home page, or a proxy's sign-in page is in between.
		return &Error{Kind: ErrInvalid, Message: fmt.Sprintf("%s answered with a web page, not with a model's answer; check the provider's baseURL (%s)", id, b.where())}
	case errors.Is(err, errRedirect):
		return &Error{Kind: ErrInvalid, Message: fmt.Sprintf("%s: %v (%s)", id, errRedirect, b.where())}
	case errors.Is(err, errEventTooLong):
		return &Error{Kind: ErrServer, Message: fmt.Sprintf("%s: %v", id, errEventTooLong)}
	case errors.Is(err, errCut), errors.Is(err, io.ErrUnexpectedEOF):
		return &Error{Kind: ErrCut, Message: fmt.Sprintf("the answer of %s was cut off before its end", id)}
	case errors.Is(err, errBadEvent):
		return &Error{Kind: ErrServer, Message: fmt.Sprintf("%s sent something that is not JSON in its answer", id)}
	}
	return &Error{Kind: ErrNetwork, Message: b.network(err)}
}

// network describes for a person what is wrong with a connection. It never contains the URL's query, which may hold a key. Where the
// cause is known, Go's error is left out: "dial tcp: lookup" helps few people.
func (b *base) network(err error) string {
	id, where := b.cfg.ID, b.where()
	var dns *net.DNSError
	var unknown x509.UnknownAuthorityError
	var host x509.HostnameError
	var cert *tls.CertificateVerificationError
	var timeout interface{ Timeout() bool }
	if text := proxyTrouble(err); text != "" {
		return id + ": " + text
	}
	switch {
	case errors.As(err, &dns):
		return fmt.Sprintf("%s: the host %s was not found; check the network and the provider's baseURL", id, dns.Name)
	case errors.Is(err, syscall.ECONNREFUSED):
		return fmt.Sprintf("%s: connection to %s refused; start the model server or correct the provider's baseURL", id, where)
	case errors.As(err, &unknown), errors.As(err, &host), errors.As(err, &cert):
		if err := guard.AuthoritiesError(); err != nil {
			return fmt.Sprintf("%s: the certificate of %s is not trusted, and %v", id, where, err)
		}
		return fmt.Sprintf("%s: the certificate of %s is not trusted; if your network replaces certificates, set NODE_EXTRA_CA_CERTS to the PEM file of its authority", id, where)
	case errors.As(err, &timeout) && timeout.Timeout():
		return fmt.Sprintf("%s: %s did not answer in time", id, where)
	case errors.Is(err, syscall.ECONNRESET), errors.Is(err, io.EOF):
		return fmt.Sprintf("%s: %s closed the connection without an answer", id, where)
	}
	var u *url.Error
	if errors.As(err, &u) {
		// url.Error's text begins with the method and the whole URL.
		err = u.Err // without the URL, which may hold a key
	}
	return fmt.Sprintf("%s: no connection to %s: %v", id, where, err)
}

// proxyTrouble describes a connection that failed at the proxy and not at the server; "" for any other failure. net/http calls the first
// kind "proxyconnect"; the proxy's refusal comes as the words of its status line.
func proxyTrouble(err error) string {
	var op *net.OpError
	if errors.As(err, &op) && op.Op == "proxyconnect" {
		return fmt.Sprintf("the proxy of HTTPS_PROXY or HTTP_PROXY cannot be reached (%v); correct the variable, or name the server in NO_PROXY", op.Err)
	}
	switch cause := err.Error(); {
	case strings.HasSuffix(cause, "Proxy Authentication Required"):
		return "the proxy wants a user and a password; set HTTPS_PROXY=http://user:password@host:port"
	}
	return ""
}

// where names the server without the parts of its URL that may be secret.
func (b *base) where() string {
	if b.cfg.BaseURL == "" {
		return "the provider's server"
	}
	return redactURL(b.cfg.BaseURL)
}

// classify makes the *Error of a failure that the provider reported: its kind, the provider's words, and what the person can do.
func (b *base) classify(model string, f *apiFailure) *Error {
	// A provider may say how long to wait in the body and in a header; the longer wait counts.
	e := &Error{Status: f.status, RetryAfter: max(f.delay, retryAfter(f.header, time.Now())), shape: complaint(f.message)}
	e.RetryAfter = min(e.RetryAfter, maxRetryAfter)
	e.Kind = failureKind(f)
	id, said := b.cfg.ID, shorten(f.message)
	if said != "" {
		said = ": " + said
	}
	name := model
	if name == "" {
		name = "the model"
	}
	switch e.Kind {
	case ErrAuth:
		if b.cfg.Key == "" && b.cfg.Token == "" {
			e.Message = fmt.Sprintf("%s wants an API key%s; set %s", id, said, b.keyPlace())
		} else {
			e.Message = fmt.Sprintf("%s refused the API key%s; correct %s", id, said, b.keyPlace())
		}
		// 403: the key is valid, but has no permission for this.
		if f.status == http.StatusForbidden {
			e.Message = fmt.Sprintf("%s does not allow this key to use %s%s; check the key's rights and region, or choose another model", id, name, said)
		}
	case ErrNotFound:
		e.Message = fmt.Sprintf("%s does not know the model %s%s; \"pillion models %s\" lists the models; if the name is right, check the provider's baseURL", id, name, said, id)
	case ErrRateLimit:
		e.Message = fmt.Sprintf("%s limits the rate of requests%s", id, said)
		if e.RetryAfter > 0 {
			e.Message += fmt.Sprintf("; it asks to wait %s", e.RetryAfter.Round(time.Second))
		}
	case ErrOverloaded:
		e.Message = fmt.Sprintf("%s is overloaded%s", id, said)
	case ErrServer:
		e.Message = fmt.Sprintf("%s failed%s%s", id, statusText(f.status), said)
	case ErrNetwork:
		e.Message = fmt.Sprintf("%s timed out%s", id, said)
	case ErrQuota:
		e.Message = fmt.Sprintf("%s: no credit left%s; add credit or choose another model", id, said)
	case ErrContextLength:
		e.Message = fmt.Sprintf("the conversation is too long for %s%s", name, said) // the agent compacts it, and gives advice when that fails
	default:
		e.Message = fmt.Sprintf("%s refused the request%s%s", id, statusText(f.status), said)
		// Ollama says "does not support tools", for example: the same request will never work with that model.
		if containsWord(strings.ToLower(f.message), "tools") && strings.Contains(f.message, "support") {
			e.Message += "; the model cannot use tools, choose one that can"
		} else if filtered(f) {
			// Only other words or another filter can help, and the person chooses either.
			e.Message += "; a filter stopped it: put the request another way, or choose another model"
		} else {
			e.Message += "; choose another model, or start a new session if this continues"
		}
	}
	return e
}

// filtered reports a refusal by a provider's content filter, in any of the words that are known.
// The formats have no common code for it; the words are those of Azure, Alibaba and others.
func filtered(f *apiFailure) bool {
	text := strings.ToLower(f.code + " " + f.kind + " " + f.message)
	for _, w := range [...]string{"content_filter", "content filter", "content management policy", "content policy", "moderation", "data_inspection"} {
		if strings.Contains(text, w) {
			return true
		}
	}
	return false
}

// statusText is " (HTTP 500)", or empty for a failure inside a stream.
func statusText(status int) string {
	if status == 0 {
		return ""
	}
	return fmt.Sprintf(" (HTTP %d)", status)
}

// keyPlace names the setting or the variable that the key comes from, or was looked for in: that is where the person corrects it.
func (b *base) keyPlace() string {
	if from := b.cfg.KeyFrom; from != "" {
		// "file:line:column" contains a colon, a variable's name does not
		if strings.Contains(from, ":") {
			return "the key at " + from
		}
		return from
	}
	switch b.cfg.Kind {
	case KindAnthropic:
		return "ANTHROPIC_API_KEY"
	case KindOpenAI, KindResponses:
		return "OPENAI_API_KEY"
	case KindGemini:
		return "GEMINI_API_KEY"
	}
	return "provider." + b.cfg.ID + ".key in pillion.jsonc"
}
