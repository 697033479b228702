-- name: next_template_row
-- The number that pins the next stored version.
SELECT coalesce(max(template_row), 0) + 1 FROM templates WHERE tenant = ?;

-- name: next_template_version
-- The next version of a template for one channel, locale and variant.
SELECT coalesce(max(version), 0) + 1 FROM templates
WHERE tenant = ? AND template_id = ? AND channel = ? AND locale = ? AND variant = ?;

-- name: insert_template
-- Adds a version.
INSERT INTO templates (
    tenant, template_row, template_id, channel, locale, variant, version, subject, title, body, metadata, is_active,
    created_by, created_at
) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 1, ?, ?);

-- name: template_versions
-- Every version of a template, newest first within channel, locale and variant.
SELECT template_row, template_id, channel, locale, variant, version, subject, title, body, metadata, is_active,
    created_by, created_at
FROM templates WHERE tenant = ? AND template_id = ? ORDER BY channel, locale, variant, version DESC;

-- name: list_templates
-- Templates in the order of their ids. Parameters: tenant, the one before, limit.
SELECT template_id, group_concat(DISTINCT channel) FILTER (WHERE is_active = 1), group_concat(DISTINCT locale) FILTER (WHERE is_active = 1),
    max(version), min(created_at), max(created_at)
FROM templates WHERE tenant = ?1 AND template_id > ?2 GROUP BY template_id ORDER BY template_id LIMIT ?3;

-- name: template_channels
-- The channels that have an active version.
SELECT DISTINCT channel FROM templates WHERE tenant = ? AND template_id = ? AND is_active = 1 ORDER BY channel;

-- name: switch_off_later_versions
-- A rollback's first half.
UPDATE templates SET is_active = 0
WHERE tenant = ? AND template_id = ? AND channel = ? AND locale = ? AND variant = ? AND version > ?;

-- name: switch_on_version
-- A rollback's second half.
UPDATE templates SET is_active = 1
WHERE tenant = ? AND template_id = ? AND channel = ? AND locale = ? AND variant = ? AND version = ?
RETURNING template_row, template_id, channel, locale, variant, version, subject, title, body, metadata, is_active,
    created_by, created_at;
