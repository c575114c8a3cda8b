package postgres

import (
	"context"
	"embed"
	"errors"
	"io/fs"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/pressly/goose/v3"
	"github.com/pressly/goose/v3/lock"
)

//go:embed migrations/*.sql
var migrations embed.FS

// rolesScript makes the roles. SCHEMA_OF_LEDGER and DATABASE_OF_LEDGER stand for the names of where
// the tables are.
//
//go:embed roles.sql
var rolesScript string

// schemaVersion is the number of the last migration.
const schemaVersion = 1

// Tables of goose. Another program with goose may have its own tables in the schema.
const (
	versionTable = "pgfsm_version"
	lockTable    = "pgfsm_migration"
)

// Migrate makes a ledger in a database, or migrates its tables to this version. The URL must lead
// to the server itself: a pooler would run parts of a migration on several connections. Migrate
// returns the statements that make the roles, for psql.
func Migrate(ctx context.Context, url string) (roles string, err error) {
	c, _, err := parseURL(url)
	if err != nil {
		return "", err
	}

	db := stdlib.OpenDB(*c.ConnConfig)
	defer func() { err = errors.Join(err, db.Close()) }()
	files, err := fs.Sub(migrations, "migrations")
	if err != nil {
		return "", err
	}
	locker, err := lock.NewPostgresTableLocker(lock.WithTableName(lockTable))
	if err != nil {
		return "", err
	}

	p, err := goose.NewProvider(goose.DialectPostgres, db, files,
		goose.WithTableName(versionTable), goose.WithLocker(locker), goose.WithDisableGlobalRegistry(true))
	if err != nil {
		return "", err
	}
	if _, err := p.Up(ctx); err != nil {
		return "", explainError(ctx, err)
	}

	var schema, database string
	if err := db.QueryRowContext(ctx, "SELECT current_schema(), current_database()").Scan(&schema,
		&database); err != nil {
		return "", explainError(ctx, err)
	}

	names := strings.NewReplacer("SCHEMA_OF_LEDGER", pgx.Identifier{schema}.Sanitize(), "DATABASE_OF_LEDGER",
		pgx.Identifier{database}.Sanitize())
	return names.Replace(rolesScript), nil
}
