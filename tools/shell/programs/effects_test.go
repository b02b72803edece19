package programs_test

import (
	"testing"

	"github.com/pillion-dev/pillion/tools/shell/programs"
	"github.com/pillion-dev/pillion/tools/shell/scan"
)

// With permission "auto" what deletes or reaches elsewhere is asked about, also where only the name of a subcommand or a task says so.
func TestVerbsOfSubcommandsAndTasks(t *testing.T) {
	for _, command := range []string{
		"make deploy", "npm run deploy", "npm run db:reset", "npm run release:patch", "rake db:drop", "rails db:reset", "python manage.py flush --noinput", "alembic downgrade base", "npx prisma migrate reset", "./gradlew publish", "mvn -q deploy",
		"fly deploy", "netlify deploy --prod", "twine upload dist/x", "cargo yank x", "hg push", "git lfs push", "git svn dcommit", "vagrant destroy", "just publish", "pnpm dlx x", "unknown delete x", "unknown -v drop-all",
		"python3 -m pip install x", "python -m twine upload x", "python3 -m pip uninstall x", "git checkout-index -f -a", "sqlite3 x.db 'drop table x'", "sqlite3 x.db 'DELETE FROM x'", "git replace -d x", "7z d x.7z a", "yarn", "bundle",
	} {
		if held, _ := programs.Contained(analyzed(command)); held {
			t.Errorf("not asked with permission auto: %s", command)
		}
	}
	for _, command := range []string{"make", "make test", "npm run build", "touch delete", "mkdir release", "cp push drop", "git checkout release", "git merge drop-x", "cargo run -- delete", "python3 x.py", "python3 -m pytest", "go test ./deploy", "./deploy/check", "make build/release",
		"python3 x.py pip install", "sqlite3 x.db 'select 1'", "git checkout-index a", "7z l x.7z", "yarn build", "bundle exec rspec"} {
		if held, why := programs.Contained(analyzed(command)); !held {
			t.Errorf("asked with permission auto: %s: %s", command, why)
		}
	}
}

// A program whose grants keep more words than its name takes the name of a task there, also one that a person has described.
func TestVerbsOfOwnPrograms(t *testing.T) {
	for record, asked := range map[string]bool{`{"words": "text...", "always": "2"}`: true, `{"words": "text...", "always": "3"}`: true, `{"words": "text...", "always": "1"}`: false, `{"words": "text..."}`: false,
		`{"always": "1"}`: false, `{}`: true, `{"words": "text...", "always": "1", "sub": {"a": {}}}`: true, `{"words": "text...", "code": "e"}`: true} {
		set, err := programs.NewSet(map[string]string{"acme": record})
		if err != nil {
			t.Fatal(err)
		}
		if held, _ := programs.Contained(set.Analyze(scan.Request{Command: "acme deploy", Dir: "/w/p", Root: "/w/p", Home: "/w"})); held == asked {
			t.Errorf("%s: asked about deploy %t, want %t", record, !held, asked)
		}
	}
}
