/**
 * The migrations that `run_migration` knows: what each is for, its statements in order, and what a
 * statement destroys. Data only. A migration that was released is never edited; write a new one.
 */

export interface MigrationStatement {
  /** What it does, for the progress line. */
  readonly title: string
  /** One SQL statement. */
  readonly sql: string
  /** Required of every statement that destroys data: the user is asked first. */
  readonly destroys?: {
    /** What is lost, for the question: `rows of legacy_sessions, and the table`. */
    readonly what: string
    /** A query whose only column is the number of rows that will be lost. */
    readonly count: string
  }
}

export interface Migration {
  readonly description: string
  /** Migrations that must be complete before this one. */
  readonly needs?: readonly string[]
  readonly statements: readonly MigrationStatement[]
}

export const migrations = {
  create_users: {
    description: 'Users and teams with their first rows, and the sessions of the old login.',
    statements: [
      {
        title: 'table users',
        sql: `CREATE TABLE users (
          id INTEGER PRIMARY KEY, email TEXT NOT NULL, name TEXT NOT NULL,
          created_at TEXT NOT NULL DEFAULT CURRENT_TIMESTAMP)`,
      },
      {
        title: 'table teams',
        sql: 'CREATE TABLE teams (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE)',
      },
      {
        title: 'table memberships',
        sql: `CREATE TABLE memberships (
          user_id INTEGER NOT NULL REFERENCES users(id), team_id INTEGER NOT NULL REFERENCES teams(id),
          role TEXT NOT NULL CHECK (role IN ('owner', 'member')), PRIMARY KEY (user_id, team_id)) WITHOUT ROWID`,
      },
      {
        title: 'table legacy_sessions',
        sql: `CREATE TABLE legacy_sessions (
          token TEXT PRIMARY KEY, user_id INTEGER NOT NULL REFERENCES users(id), expires_at TEXT NOT NULL)`,
      },
      {
        title: 'first users',
        sql: `INSERT INTO users (id, email, name) VALUES
          (1, 'ada@example.com', 'Ada Lovelace'), (2, 'grace@example.com', 'Grace Hopper'),
          (3, 'katherine@example.com', 'Katherine Johnson'), (4, 'edsger@example.com', 'Edsger Dijkstra')`,
      },
      {
        title: 'first teams',
        sql: `INSERT INTO teams (id, name) VALUES (1, 'Engines'), (2, 'Compilers')`,
      },
      {
        title: 'first memberships',
        sql: `INSERT INTO memberships (user_id, team_id, role) VALUES
          (1, 1, 'owner'), (2, 2, 'owner'), (3, 1, 'member'), (4, 2, 'member')`,
      },
      {
        title: 'sessions of the old login',
        sql: `INSERT INTO legacy_sessions (token, user_id, expires_at)
          WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 240)
          SELECT printf('legacy-%04d', i), 1 + i % 4, datetime('now', (i % 30) || ' days') FROM n`,
      },
    ],
  },
  add_user_email_index: {
    description: 'Finds users by email quickly, whatever its case, and lets no email be used twice.',
    needs: ['create_users'],
    statements: [
      {
        title: 'unique index on email',
        sql: 'CREATE UNIQUE INDEX users_email ON users(lower(email))',
      },
      {
        title: 'index on memberships by team',
        sql: 'CREATE INDEX memberships_team ON memberships(team_id, role)',
      },
    ],
  },
  drop_legacy_sessions: {
    description: 'Removes the sessions of the old login: everybody signs in again.',
    needs: ['create_users'],
    statements: [
      {
        title: 'table sessions',
        sql: `CREATE TABLE sessions (
          id TEXT PRIMARY KEY, user_id INTEGER NOT NULL REFERENCES users(id), expires_at INTEGER NOT NULL)`,
      },
      {
        title: 'drop table legacy_sessions',
        sql: 'DROP TABLE legacy_sessions',
        destroys: {
          what: 'rows of legacy_sessions, and the table itself',
          count: 'SELECT count(*) FROM legacy_sessions',
        },
      },
    ],
  },
} as const satisfies Readonly<Record<string, Migration>>

export type MigrationName = keyof typeof migrations
