package store

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/lib/pq"
)

// postgres is a schema of a PostgreSQL database: "pillion", or the URL's search_path. One connection writes and holds the locks of the
// sessions that run in this process. The server releases those locks when the connection ends, so after a lost connection begin takes
// them again before anything is written.
type postgres struct {
	url string

	mu   sync.Mutex
	gen  int64                   // guarded by mu: how often the writing connection was made; a lock with another number is lost
	held map[string]*hold        // guarded by mu: by session
	gone map[string]*FencedError // guarded by mu: taken over while the connection was lost
}

func newPostgres(url string) *postgres {
	return &postgres{url: url, held: map[string]*hold{}, gone: map[string]*FencedError{}}
}

// connectPatience bounds the connection and each question about locks; lockPatience is how long lock waits for a turn that is just
// ending, over a network longer than beside a file.
const (
	connectPatience = 5 * time.Second
	lockPatience    = 2 * time.Second
)

// config parses the address. It does so at each use and not in New, so that a wrong address is an error of the store, which people are
// told.
func (p *postgres) config() (c pq.Config, schema string, err error) {
	if c, err = pq.NewConfig(p.url); err != nil {
		return c, "", wrongAddress(err)
	}
	// A connect_timeout in the address wins.
	if c.ConnectTimeout == 0 {
		c.ConnectTimeout = connectPatience
	}
	// As PostgreSQL's own programs do: encrypted where the server can. An address that wants to be sure of it says sslmode=verify-full.
	if c.SSLMode == "" {
		c.SSLMode = pq.SSLModePrefer
	}
	schema = "pillion"
	if s := c.Runtime["search_path"]; s != "" {
		schema = s
	}
	delete(c.Runtime, "search_path") // connection poolers such as PgBouncer refuse it as a startup parameter
	return c, schema, nil
}

// name is the address without user, password and settings: it is shown to people and is part of messages.
func (p *postgres) name() string {
	c, schema, err := p.config()
	if err != nil {
		return "the PostgreSQL server of the setting store"
	}
	return fmt.Sprintf("postgres://%s/%s (schema %s)", c.Host, c.Database, schema)
}

// pool makes a pool of at most conns connections in our schema. connected is called for each connection that is made, which happens at
// the first use and after each loss. writes says which way most bytes go.
func (p *postgres) pool(conns int, writes bool, connected func()) (*sql.DB, string, error) {
	c, schema, err := p.config()
	if err != nil {
		return nil, "", err
	}
	// A connection of the driver either sends bytes as they are, in one round trip, or receives them so. The other way they are hexadecimal
	// text of twice the size.
	c.BinaryParameters = writes
	base, err := pq.NewConnectorConfig(c)
	if err != nil {
		return nil, "", wrongAddress(err)
	}
	base.Dialer(impatientDialer{})
	d := sql.OpenDB(&connector{base, func(ctx context.Context, conn driver.Conn) error {
		// The schema's name comes from a setting and becomes part of statements, so it is quoted. The server asks after a silent client:
		// 30 s of silence, then three questions 10 s apart. A machine that vanishes loses its connection, and with it its locks, after a
		// minute and not after hours.
		args := []driver.NamedValue{{Ordinal: 1, Value: pq.QuoteIdentifier(schema)}}
		_, err := conn.(driver.ExecerContext).ExecContext(ctx, `SELECT set_config('search_path', $1, false), set_config('tcp_keepalives_idle', '30', false),
			set_config('tcp_keepalives_interval', '10', false), set_config('tcp_keepalives_count', '3', false)`, args)
		if err == nil && connected != nil {
			connected()
		}
		return err
	}})
	// An idle connection is kept: the next turn comes soon, and a TLS handshake costs round trips.
	d.SetMaxOpenConns(conns)
	d.SetMaxIdleConns(1)
	return d, schema, nil
}

// open migrates the schema, in at most twice connectPatience: a server that does not answer must not block the writer, which has the
// queue to keep.
func (p *postgres) open() (*sql.DB, error) {
	d, schema, err := p.pool(1, true, func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		// Locks that were taken on the connection before have an older number now, by which stale finds them.
		p.gen++
	})
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), 2*connectPatience)
	defer cancel()
	if err := p.migrate(ctx, d, schema); err != nil {
		d.Close()
		return nil, err
	}
	return d, nil
}

func (p *postgres) reader(*sql.DB) (*sql.DB, error) {
	// Four readers, so that sessions which are opened at once do not wait for each other.
	d, _, err := p.pool(4, false, nil)
	if err == nil {
		d.SetConnMaxIdleTime(time.Minute)
	}
	return d, err
}

// bind replaces each ? by $1, $2 and so on. No query of this package has a question mark in a text.
func (p *postgres) bind(query string) string {
	if !strings.Contains(query, "?") {
		return query
	}
	var b strings.Builder
	n := 0
	for {
		before, after, found := strings.Cut(query, "?")
		b.WriteString(before)
		if !found {
			return b.String()
		}
		n++
		b.WriteByte('$')
		b.WriteString(strconv.Itoa(n))
		query = after
	}
}

// clean replaces by U+FFFD what a PostgreSQL text cannot hold: invalid UTF-8 and NUL. Otherwise one path with such bytes could not be
// inserted and would hold up the whole queue behind it.
func (p *postgres) clean(text string) string {
	return strings.ReplaceAll(strings.ToValidUTF8(text, "\uFFFD"), "\x00", "\uFFFD")
}

// insert sends the rows as the parameters of one statement: one round trip for the maxBatch of a transaction, whose 16,384 parameters are a
// quarter of what the protocol can count. Rows whose key is taken are left out and not counted.
func (p *postgres) insert(t tx, rows []row) (int64, error) {
	query, args := []byte("INSERT INTO events(key, time, type, data) VALUES "), make([]any, 0, 4*len(rows))
	for i, r := range rows {
		if i > 0 {
			query = append(query, ',')
		}
		query = fmt.Appendf(query, "($%d,$%d,$%d,$%d)", 4*i+1, 4*i+2, 4*i+3, 4*i+4)
		data := r.whole().Data
		if data == nil {
			data = []byte{} // nil would be sent as NULL, which the column refuses
		}
		args = append(args, r.key, r.Time.UnixMicro(), p.clean(r.Type), []byte(data))
	}
	res, err := t.t.Exec(string(append(query, " ON CONFLICT DO NOTHING"...)), args...)
	if err != nil {
		return 0, err
	}
	return res.RowsAffected()
}

// pgMigrations only lead forward; the index plus one is the version. An entry that was released is never changed, since its databases
// exist.
var pgMigrations = []string{
	`CREATE TABLE sessions(
		num bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
		id text NOT NULL UNIQUE, cwd text NOT NULL, title text NOT NULL, parent text NOT NULL,
		created bigint NOT NULL, updated bigint NOT NULL, -- microseconds since 1970
		info bytea NOT NULL);
	CREATE INDEX sessions_parent ON sessions(parent) WHERE parent <> '';
	CREATE TABLE events(
		key bigint PRIMARY KEY, -- sessions.num << 32 | seq
		time bigint NOT NULL, type text NOT NULL, data bytea NOT NULL);
	CREATE TABLE grants(
		id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, project text NOT NULL, permission text NOT NULL, pattern text NOT NULL,
		created bigint NOT NULL, UNIQUE(project, permission, pattern));
	CREATE TABLE journal(id text PRIMARY KEY, data bytea NOT NULL, created bigint NOT NULL, pid bigint NOT NULL);
	CREATE TABLE changes(
		rowid bigint GENERATED ALWAYS AS IDENTITY,
		id text NOT NULL, session text NOT NULL, time bigint NOT NULL, state text NOT NULL, data bytea NOT NULL,
		PRIMARY KEY(session, id));
	CREATE TABLE writers( -- who holds, or held last, a session's lock; fence grows with every holder
		session text PRIMARY KEY, fence bigint NOT NULL, host text NOT NULL, pid bigint NOT NULL, since bigint NOT NULL);`,
}

// migrate brings the schema to the present version in one transaction, under an advisory lock, so that programs which start together take
// turns. A newer schema, or one with tables of another program, is a *Problem and is not changed. The schema is created only when it is
// missing: a user without CREATE on the database may use one that an administrator has made.
func (p *postgres) migrate(ctx context.Context, d *sql.DB, schema string) error {
	v, err := p.version(ctx, d)
	// The usual start only reads the version, and takes no lock.
	if err != nil || v == len(pgMigrations) {
		return err
	}
	t, err := d.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer t.Rollback()
	// The number is ours alone, so that no other program waits for this lock. It ends with the transaction.
	if _, err := t.ExecContext(ctx, "SELECT pg_advisory_xact_lock(7526175)"); err != nil {
		return err
	}
	var there bool
	if err := t.QueryRowContext(ctx, "SELECT EXISTS (SELECT FROM pg_namespace WHERE nspname = $1)", schema).Scan(&there); err != nil {
		return err
	}
	if !there {
		if _, err := t.ExecContext(ctx, "CREATE SCHEMA "+pq.QuoteIdentifier(schema)); err != nil {
			return err
		}
	}
	// Another program may have migrated while this one waited for the lock.
	if v, err = p.version(ctx, t); err != nil {
		return err
	}
	if v > len(pgMigrations) {
		return &Problem{Kind: ProblemNewer, Path: p.name(), Message: fmt.Sprintf(
			"%s was written by a newer Pillion (schema %d, this one knows %d). It was not changed: update Pillion", p.name(), v, len(pgMigrations))}
	}
	if v == 0 {
		// Without our version table, any table in the schema belongs to another program.
		var n int
		if err := t.QueryRowContext(ctx, "SELECT count(*) FROM pg_tables WHERE schemaname = $1", schema).Scan(&n); err != nil {
			return err
		}
		if n > 0 {
			return &Problem{Kind: ProblemForeign, Path: p.name(), Message: p.name() + " has tables of another program. It is left as it is: name another schema with ?search_path= in the setting store"}
		}
		if _, err := t.ExecContext(ctx, "CREATE TABLE schema_version(version integer PRIMARY KEY, applied bigint NOT NULL)"); err != nil {
			return err
		}
	}
	for ; v < len(pgMigrations); v++ {
		if _, err := t.ExecContext(ctx, pgMigrations[v]); err != nil {
			return fmt.Errorf("bringing %s to schema %d: %w", p.name(), v+1, err)
		}
		if _, err := t.ExecContext(ctx, "INSERT INTO schema_version VALUES ($1, $2)", v+1, time.Now().UnixMicro()); err != nil {
			return err
		}
	}
	return t.Commit()
}

// version is the schema's version; 0 when the tables are not there.
func (p *postgres) version(ctx context.Context, q queryer) (v int, err error) {
	var there bool
	// current_schema is NULL when the schema does not exist, which counts as no table.
	if err := q.QueryRowContext(ctx, "SELECT to_regclass(quote_ident(current_schema()) || '.schema_version') IS NOT NULL").Scan(&there); err != nil || !there {
		return 0, err
	}
	err = q.QueryRowContext(ctx, "SELECT coalesce(max(version), 0) FROM schema_version").Scan(&v)
	return v, err
}

// connector makes connections of which each is prepared by after.
type connector struct {
	*pq.Connector
	after func(context.Context, driver.Conn) error
}

func (c *connector) Connect(ctx context.Context) (driver.Conn, error) {
	conn, err := c.Connector.Connect(ctx)
	if err != nil {
		return nil, err
	}
	if err := c.after(ctx, conn); err != nil {
		conn.Close()
		return nil, err
	}
	return conn, nil
}
