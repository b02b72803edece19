package models_test

import (
	"context"
	"fmt"

	"github.com/pillion-dev/pillion/agent/provider"
	"github.com/pillion-dev/pillion/sidecar/models"
)

// Without any key the built-in model answers. A key in the environment makes a model of its provider the default.
func Example() {
	env := map[string]string{}
	m := models.New(models.Options{
		Env:   func(name string) string { return env[name] },
		Local: func(context.Context) []provider.LocalServer { return nil },
	})
	for range 2 {
		_, model, err := m.Resolve(context.Background(), "/home/me/project", "")
		fmt.Println(model.Provider, err)
		env["OPENAI_API_KEY"] = "sk-x"
	}
	// Output:
	// builtin <nil>
	// openai <nil>
}
