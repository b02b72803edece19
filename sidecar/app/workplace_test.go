package app

import "testing"

func TestAnIndexKeepsNothingOfFilesWithKeys(t *testing.T) {
	withheld := withheldFromIndex()
	for rel, want := range map[string]bool{
		".env": true, "a/.env.local": true, ".envrc": true, "deploy/ID_RSA": true, "certs/server.key": true, ".npmrc": true, "credentials.json": true,
		".env.example": false, "main.go": false, "keys.go": false, "environment.md": false,
	} {
		if got := withheld(rel); got != want {
			t.Errorf("%s: %v", rel, got)
		}
	}
}
