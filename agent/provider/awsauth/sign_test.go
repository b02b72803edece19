package awsauth

import (
	"net/http"
	"strings"
	"testing"
	"time"
)

// The first two are AWS's own vectors (get-vanilla, post-vanilla of its Signature Version 4 test suite); the others were made with
// aws-sdk-go-v2's signer, which agreed on 20,000 random requests as well.
func TestSignaturesAreThoseOfAWS(t *testing.T) {
	vectors := Keys{ID: "AKIDEXAMPLE", Secret: "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY"}
	temporary := vectors
	temporary.Session = "tok/en=="
	tests := map[string]struct {
		method, url, service string
		header               http.Header
		body                 string
		keys                 Keys
		names, want          string
	}{
		"get":  {"GET", "https://example.amazonaws.com/", "service", nil, "", vectors, "host;x-amz-date", "5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31"},
		"post": {"POST", "https://example.amazonaws.com/", "service", nil, "", vectors, "host;x-amz-date", "5da7c1a2acd57cee7505fc6676e4e544621c30862966e37dddb68e92efbe5d6b"},
		"everything": {"POST", "http://h.example:80/a b/%2F/ü/c:d@e?z=%2F~*&a=2&a=1&q=a+b", "bedrock-mantle",
			http.Header{"X-Own": {" a  b ", "c"}, "User-Agent": {"not signed"}, "Authorization": {"replaced"}, "Content-Type": {"application/json"}}, "{}", temporary,
			"content-length;content-type;host;x-amz-date;x-amz-security-token;x-own", "9606529e04045befd723e0f24a5272928072fb397982e0cd8fad7a30dacc9e7e"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			q, err := http.NewRequest(tt.method, tt.url, strings.NewReader(tt.body))
			if err != nil {
				t.Fatal(err)
			}
			for k, v := range tt.header {
				q.Header[k] = v
			}
			Sign(q, []byte(tt.body), tt.keys, tt.service, "us-east-1", time.Date(2015, 8, 30, 12, 36, 0, 0, time.UTC))
			want := "AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20150830/us-east-1/" + tt.service + "/aws4_request, SignedHeaders=" + tt.names + ", Signature=" + tt.want
			if got := q.Header.Get("Authorization"); got != want {
				t.Errorf("%s\nwant %s", got, want)
			}
		})
	}
}
