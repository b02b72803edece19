// Package awsauth finds a person's AWS credentials where AWS's own tools find them, and signs requests with them (Signature Version 4).
// It knows nothing of models; package provider signs its requests to Bedrock with it.
//
//	keys, err := chain.Keys(ctx, "eu-central-1")
//	awsauth.Sign(request, body, keys, "bedrock-mantle", "eu-central-1", time.Now())
package awsauth

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Keys are credentials of AWS.
type Keys struct {
	ID, Secret string
	Session    string    // of temporary credentials; may be empty
	Expires    time.Time // zero: never, or not known
}

// algorithm is the name of the signature, https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_sigv-create-signed-request.html
const algorithm = "AWS4-HMAC-SHA256"

// Sign adds a signature to q, which must be complete: every header but User-Agent is signed, because proxies add to that one. body is
// what q sends. A header that is changed afterwards makes the signature invalid.
func Sign(q *http.Request, body []byte, keys Keys, service, region string, at time.Time) {
	stamp := at.UTC().Format("20060102T150405Z")
	q.Header.Set("X-Amz-Date", stamp)
	q.Header.Del("X-Amz-Security-Token")
	if keys.Session != "" {
		q.Header.Set("X-Amz-Security-Token", keys.Session)
	}
	names, lines := signedHeaders(q, len(body))
	request := strings.Join([]string{q.Method, canonicalPath(q.URL), canonicalQuery(q.URL), lines, names, hexHash(body)}, "\n")
	scope := strings.Join([]string{stamp[:8], region, service, "aws4_request"}, "/")
	key := []byte("AWS4" + keys.Secret)
	for _, part := range strings.Split(scope, "/") {
		key = mac(key, part)
	}
	signature := hex.EncodeToString(mac(key, strings.Join([]string{algorithm, stamp, scope, hexHash([]byte(request))}, "\n")))
	q.Header.Set("Authorization", algorithm+" Credential="+keys.ID+"/"+scope+", SignedHeaders="+names+", Signature="+signature)
}

// signedHeaders are the names of the headers, sorted and joined by semicolons, and their canonical lines.
func signedHeaders(q *http.Request, length int) (names, lines string) {
	host := q.Host
	if host == "" {
		host = q.URL.Host
	}
	// net/http sends the default port of neither scheme.
	if port := map[string]string{"http": ":80", "https": ":443"}[q.URL.Scheme]; port != "" {
		host = strings.TrimSuffix(host, port)
	}
	values := map[string][]string{"host": {host}}
	if length > 0 {
		values["content-length"] = []string{strconv.Itoa(length)}
	}
	for name, v := range q.Header {
		switch name := strings.ToLower(name); name {
		case "authorization", "user-agent", "x-amzn-trace-id", "expect", "transfer-encoding", "content-length", "host":
		default:
			values[name] = append(values[name], v...)
		}
	}
	sorted := make([]string, 0, len(values))
	for name := range values {
		sorted = append(sorted, name)
	}
	slices.Sort(sorted)
	var b strings.Builder
	for _, name := range sorted {
		b.WriteString(name + ":")
		for i, v := range values[name] {
			if i > 0 {
				b.WriteByte(',')
			}
			b.WriteString(singleSpaces(v))
		}
		b.WriteByte('\n')
	}
	return strings.Join(sorted, ";"), b.String()
}

// singleSpaces trims a header's value and makes one space of several.
func singleSpaces(v string) string {
	v = strings.TrimSpace(v)
	for strings.Contains(v, "  ") {
		v = strings.ReplaceAll(v, "  ", " ")
	}
	return v
}

// canonicalPath is the escaped path, escaped once more: all services but S3 sign it so.
func canonicalPath(u *url.URL) string {
	path := u.EscapedPath()
	if path == "" {
		path = "/"
	}
	var b strings.Builder
	for i := range len(path) {
		if c := path[i]; c == '/' || unreserved(c) {
			b.WriteByte(c)
		} else {
			b.WriteString("%" + strings.ToUpper(hex.EncodeToString([]byte{c})))
		}
	}
	return b.String()
}

// canonicalQuery is the query sorted by name and value.
func canonicalQuery(u *url.URL) string {
	query := u.Query()
	for _, values := range query {
		slices.Sort(values)
	}
	return strings.ReplaceAll(query.Encode(), "+", "%20")
}

// unreserved reports the characters that RFC 3986, section 2.3, never escapes.
func unreserved(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.IndexByte("-._~", c) >= 0
}

func mac(key []byte, text string) []byte {
	h := hmac.New(sha256.New, key)
	h.Write([]byte(text))
	return h.Sum(nil)
}

func hexHash(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}
