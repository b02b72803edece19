package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pillion-dev/pillion/sidecar/config"
)

// --share is the person's, like the setting: what was decided for everybody counts against both.
func TestManagedSettingsForbidSharing(t *testing.T) {
	for _, c := range []struct {
		managed, own string
		flag, want   bool
		refused      bool
	}{
		{managed: `{}`, own: `{}`, flag: true, want: true},
		{managed: `{}`, own: `{"attachable": true}`, want: true},
		{managed: `{}`, own: `{"attachable": false}`, flag: true, want: true},
		{managed: `{"attachable": false}`, own: `{"attachable": true}`, want: false},
		{managed: `{"attachable": false}`, own: `{"attachable": true}`, flag: true, refused: true},
		{managed: `{"attachable": true}`, own: `{}`, want: true},
	} {
		dirs := map[string]string{"managed": c.managed, "own": c.own}
		for name, text := range dirs {
			dirs[name] = t.TempDir()
			if err := os.WriteFile(filepath.Join(dirs[name], "pillion.jsonc"), []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		loaded, _ := config.Load(config.Sources{UserDir: dirs["own"], ManagedDir: dirs["managed"]})
		got, err := isShared(loaded, c.flag)
		if (err != nil) != c.refused || got != c.want {
			t.Errorf("%+v: %t, %v", c, got, err)
		}
		if c.refused && err != nil && !strings.Contains(err.Error(), dirs["managed"]) {
			t.Errorf("%v does not name the file", err)
		}
	}
}
