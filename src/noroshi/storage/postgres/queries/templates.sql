-- name: next_template_row
-- The number that pins the next stored version.
SELECT coalesce(max(template_row), 0) + 1 FROM templates WHERE tenant = $1;

-- name: next_template_version
-- The next version of a template for one channel, locale and variant.
SELECT coalesce(max(version), 0) + 1 FROM templates
WHERE tenant = $1 AND template_id = $2 AND channel = $3 AND locale = $4 AND variant = $5;

-- name: insert_template
-- Adds a version.
INSERT INTO templates (
    tenant, template_row, template_id, channel, locale, variant, version, subject, title, body, metadata, is_active,
    created_by, created_at
) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, true, $12, $13);

-- name: template_versions
-- Every version of a template, newest first within channel, locale and variant.
SELECT template_row, template_id, channel, locale, variant, version, subject, title, body, metadata, is_active,
    created_by, created_at
FROM templates WHERE tenant = $1 AND template_id = $2 ORDER BY channel, locale, variant, version DESC;

-- name: list_templates
-- Templates in the order of their ids. Parameters: tenant, the one before, limit.
SELECT template_id, string_agg(DISTINCT channel, ',') FILTER (WHERE is_active), string_agg(DISTINCT locale, ',') FILTER (WHERE is_active),
    max(version), min(created_at), max(created_at)
FROM templates WHERE tenant = $1 AND template_id > $2 GROUP BY template_id ORDER BY template_id LIMIT $3;

-- name: template_channels
-- The channels that have an active version.
SELECT DISTINCT channel FROM templates WHERE tenant = $1 AND template_id = $2 AND is_active ORDER BY channel;

-- name: switch_off_later_versions
-- A rollback's first half.
UPDATE templates SET is_active = false
WHERE tenant = $1 AND template_id = $2 AND channel = $3 AND locale = $4 AND variant = $5 AND version > $6;

-- name: switch_on_version
-- A rollback's second half.
UPDATE templates SET is_active = true
WHERE tenant = $1 AND template_id = $2 AND channel = $3 AND locale = $4 AND variant = $5 AND version = $6
RETURNING template_row, template_id, channel, locale, variant, version, subject, title, body, metadata, is_active,
    created_by, created_at;
