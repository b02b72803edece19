package main

import (
	"go/ast"
	"strings"
	"testing"
)

// Every connection is made by package guard, which asks for its reason. One made otherwise fails here: clients of
// net/http, its package functions and default client, dialers of net and crypto/tls, in values and calls alike.
func TestEveryConnectionIsMadeThroughGuard(t *testing.T) {
	own := map[string]string{ // file and selector: why it may be there
		"../tools/guard/connect.go": "the gate itself",
		// A client literal around guard.Gate is a gate with redirects or headers of its own; its Transport is checked below.
		"../agent/provider/config.go": "gate", "../tools/mcp/transport.go": "gate",
		// The requests of an account go through its plugin's own fetch: the plugin's process makes the connection.
		"../sidecar/models/models.go": "plugin",
	}
	forbidden := map[string]bool{
		"http.Client": true, "http.Transport": true, "http.DefaultClient": true, "http.DefaultTransport": true, "http.Get": true, "http.Head": true, "http.Post": true, "http.PostForm": true,
		"net.Dialer": true, "net.Dial": true, "net.DialTimeout": true, "net.DialTCP": true, "net.DialUDP": true, "net.DialIP": true, "net.DialUnix": true, "net.ListenPacket": true, "net.ListenUDP": true,
		"tls.Dial": true, "tls.Dialer": true, "tls.DialWithDialer": true, "rpc.Dial": true, "rpc.DialHTTP": true, "smtp.SendMail": true, "unix.Connect": true, "syscall.Connect": true,
	}
	seen := 0
	for path, file := range product(t) {
		if strings.Contains(path, "/wiretest/") {
			continue
		}
		types := map[ast.Node]bool{} // a type in a signature or field makes no connection
		ast.Inspect(file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.StarExpr: // *http.Client; a literal has no star
				types[n.X] = true
			case *ast.CompositeLit:
				if name(n.Type) == "http.Client" && (own[path] == "gate" && gated(n) || own[path] == "plugin" && name(transport(n)) == "a.Transport") {
					types[n.Type] = true
				}
			case *ast.SelectorExpr:
				switch call := name(n); {
				case call == "guard.Client" || call == "guard.Gate" || call == "guard.Dialer" || call == "guard.Transport":
					seen++
				case forbidden[call] && !types[n] && own[path] != "the gate itself":
					t.Errorf("%s: %s reaches out past the gate; use guard.Client, guard.Dialer or guard.Gate, with a reason", path, call)
				}
			}
			return true
		})
	}
	if seen < 8 {
		t.Errorf("only %d uses of the gate were found; does the test still read them?", seen)
	}
}

// name is the name of a selector on a package, like http.Client.
func name(e ast.Expr) string {
	if sel, ok := e.(*ast.SelectorExpr); ok {
		if pkg, ok := sel.X.(*ast.Ident); ok {
			return pkg.Name + "." + sel.Sel.Name
		}
	}
	return ""
}

// gated reports a literal of http.Client whose Transport is guard.Gate(…).
func gated(lit *ast.CompositeLit) bool {
	call, ok := transport(lit).(*ast.CallExpr)
	return ok && name(call.Fun) == "guard.Gate"
}

// transport is the value of the field Transport in a literal; nil without one.
func transport(lit *ast.CompositeLit) ast.Expr {
	for _, e := range lit.Elts {
		if kv, ok := e.(*ast.KeyValueExpr); ok {
			if key, ok := kv.Key.(*ast.Ident); ok && key.Name == "Transport" {
				return kv.Value
			}
		}
	}
	return nil
}
