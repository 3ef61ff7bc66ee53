package examples

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	_ "modernc.org/sqlite" // the driver
)

var (
	// ErrSoldOut says that nothing is left.
	ErrSoldOut = errors.New("sold out")
	// ErrLate says that somebody with a later fence was here.
	ErrLate = errors.New("somebody else was faster")
)

// Stock is how many there are of each article, in a SQL database.
type Stock struct{ db *sql.DB }

// OpenStock opens the database in that file, and makes it if there is none. Other
// processes may have it open.
func OpenStock(ctx context.Context, file string) (*Stock, error) {
	db, err := sql.Open("sqlite", "file:"+file+"?_pragma=busy_timeout(10000)&_pragma=journal_mode(WAL)")
	if err != nil {
		return nil, err
	}
	_, err = db.ExecContext(ctx, "CREATE TABLE IF NOT EXISTS stock (sku TEXT PRIMARY KEY, n INTEGER NOT NULL, fence INTEGER NOT NULL)")
	if err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return &Stock{db}, nil
}

// Close closes the database.
func (s *Stock) Close() error { return s.db.Close() }

// Put has n pieces of an article.
func (s *Stock) Put(ctx context.Context, sku string, n int) error {
	_, err := s.db.ExecContext(ctx, "REPLACE INTO stock VALUES (?, ?, 0)", sku, n)
	return err
}

// Left returns how many pieces there are.
func (s *Stock) Left(ctx context.Context, sku string) (n int, err error) {
	err = s.db.QueryRowContext(ctx, "SELECT n FROM stock WHERE sku = ?", sku).Scan(&n)
	return n, err
}

// Take takes one piece, unless nothing is left ([ErrSoldOut]) or a later fence was
// seen ([ErrLate]). The database looks and writes in one step.
func (s *Stock) Take(ctx context.Context, sku string, fence int64) error {
	done, err := s.db.ExecContext(ctx,
		"UPDATE stock SET n = n - 1, fence = ? WHERE sku = ? AND n > 0 AND fence <= ?", fence, sku, fence)
	if err != nil {
		return fmt.Errorf("taking %q: %w", sku, err)
	}
	if n, err := done.RowsAffected(); n > 0 || err != nil {
		return err
	}
	return s.refusal(ctx, sku, fence)
}

// refusal says why nothing could be taken.
func (s *Stock) refusal(ctx context.Context, sku string, fence int64) error {
	var seen int64
	err := s.db.QueryRowContext(ctx, "SELECT fence FROM stock WHERE sku = ?", sku).Scan(&seen)
	switch {
	case err == nil && seen > fence:
		return ErrLate
	case err == nil, errors.Is(err, sql.ErrNoRows):
		return ErrSoldOut
	}
	return fmt.Errorf("looking for %q: %w", sku, err)
}
