SELECT
  [g],
  COALESCE(SUM([w]), 0) AS [s],
  COALESCE(SUM(CAST(FLOOR(CAST([w] AS FLOAT) * [v0]) AS BIGINT)), 0) AS [s_0_0],
  COALESCE(SUM(CASE WHEN [v0] IS NULL THEN [w] ELSE 0 END), 0) AS [s_0_1]
FROM (
  SELECT
    [g] AS [g],
    [w] AS [w],
    CASE
      WHEN [v0] < CAST('0.0' AS FLOAT)
      THEN CAST('0.0' AS FLOAT)
      WHEN [v0] > CAST('30.0' AS FLOAT)
      THEN CAST('1.0' AS FLOAT)
      ELSE [v0] / CAST('30.0' AS FLOAT)
    END AS [v0]
  FROM (
    SELECT
      [g] AS [g],
      [v0] AS [v0],
      (
        CAST(50331648 AS BIGINT) / CASE
          WHEN COUNT_BIG(*) OVER (PARTITION BY [unit]) > CAST(3 AS BIGINT)
          THEN COUNT_BIG(*) OVER (PARTITION BY [unit])
          ELSE CAST(3 AS BIGINT)
        END
      ) AS [w]
    FROM (
      SELECT
        [r].[v0] AS [v0],
        [r].[unit] AS [unit],
        [p].[g] AS [g]
      FROM (
        SELECT
          CAST(CAST([days] AS FLOAT) AS FLOAT) AS [v0],
          [patient] AS [unit],
          [patient] AS [k0]
        FROM (
          SELECT
            [patient] AS [patient],
            [ward] AS [ward],
            [days] AS [days],
            [photo] AS [photo]
          FROM (
            SELECT
              CAST([patient] AS BIGINT) AS [patient],
              [ward] AS [ward],
              CAST(CAST([days] AS FLOAT) AS FLOAT) AS [days],
              [photo] AS [photo]
            FROM [c].[public].[visits]
          ) AS [t]
          WHERE
            (
              CAST([days] AS FLOAT) > CAST('2.0' AS FLOAT)
              AND CAST([days] AS FLOAT) <= CAST('1.7976931348623157e308' AS FLOAT)
            )
            OR (
              CAST([days] AS FLOAT) IS NULL
            )
        ) AS [t]
        WHERE
          NOT [patient] IS NULL
      ) AS [r]
      JOIN [keys] AS [p]
        ON [r].[k0] = [p].[k0]
    ) AS [i]
  ) AS [h]
) AS [q]
GROUP BY
  [g];

SELECT
  [g],
  COALESCE(SUM([w]), 0) AS [s]
FROM (
  SELECT
    [g] AS [g],
    CAST(16777216 AS BIGINT) AS [w]
  FROM (
    SELECT DISTINCT
      [unit] AS [unit],
      [g] AS [g]
    FROM (
      SELECT
        [r].[unit] AS [unit],
        [p].[g] AS [g]
      FROM (
        SELECT
          [patient] AS [unit],
          [patient] AS [k0]
        FROM (
          SELECT
            [patient] AS [patient],
            [ward] AS [ward],
            [days] AS [days],
            [photo] AS [photo]
          FROM (
            SELECT
              CAST([patient] AS BIGINT) AS [patient],
              [ward] AS [ward],
              CAST(CAST([days] AS FLOAT) AS FLOAT) AS [days],
              [photo] AS [photo]
            FROM [c].[public].[visits]
          ) AS [t]
          WHERE
            (
              CAST([days] AS FLOAT) > CAST('2.0' AS FLOAT)
              AND CAST([days] AS FLOAT) <= CAST('1.7976931348623157e308' AS FLOAT)
            )
            OR (
              CAST([days] AS FLOAT) IS NULL
            )
        ) AS [t]
        WHERE
          NOT [patient] IS NULL
      ) AS [r]
      JOIN [keys] AS [p]
        ON [r].[k0] = [p].[k0]
    ) AS [i]
  ) AS [d]
) AS [q]
GROUP BY
  [g];

SELECT
  [g],
  COALESCE(SUM([w]), 0) AS [s],
  COALESCE(SUM(CAST(FLOOR(CAST([w] AS FLOAT) * [v0]) AS BIGINT)), 0) AS [s_0_0],
  COALESCE(SUM(CASE WHEN [v0] IS NULL THEN [w] ELSE 0 END), 0) AS [s_0_1]
FROM (
  SELECT
    [g] AS [g],
    [w] AS [w],
    CASE
      WHEN [v0] < CAST('0.0' AS FLOAT)
      THEN CAST('0.0' AS FLOAT)
      WHEN [v0] > CAST('30.0' AS FLOAT)
      THEN CAST('1.0' AS FLOAT)
      ELSE [v0] / CAST('30.0' AS FLOAT)
    END AS [v0]
  FROM (
    SELECT
      [g] AS [g],
      [v0] AS [v0],
      CAST(16777216 AS BIGINT) AS [w]
    FROM (
      SELECT
        [unit] AS [unit],
        [g] AS [g],
        [v0] AS [v0]
      FROM (
        SELECT
          [unit] AS [unit],
          [g] AS [g],
          [v0] AS [v0],
          ROW_NUMBER() OVER (
            PARTITION BY [unit]
            ORDER BY LOWER(
              CONVERT(
                VARCHAR(64),
                HASHBYTES(
                  'SHA2_256',
                  (
                    'a key that is drawn for the release#0:#4:rows' + CASE WHEN [unit] IS NULL THEN 'n' ELSE 'v' END + CAST(LEN(COALESCE(CAST([unit] AS VARCHAR(MAX)), '')) AS VARCHAR(MAX)) + ':' + COALESCE(CAST([unit] AS VARCHAR(MAX)), '') + CASE WHEN [no] IS NULL THEN 'n' ELSE 'v' END + CAST(LEN(COALESCE(CAST([no] AS VARCHAR(MAX)), '')) AS VARCHAR(MAX)) + ':' + COALESCE(CAST([no] AS VARCHAR(MAX)), '')
                  )
                ),
                2
              )
            )
          ) AS [rank]
        FROM (
          SELECT
            [unit] AS [unit],
            [g] AS [g],
            [v0] AS [v0],
            ROW_NUMBER() OVER (PARTITION BY [unit] ORDER BY [g], [v0]) AS [no]
          FROM (
            SELECT
              [r].[v0] AS [v0],
              [r].[unit] AS [unit],
              [p].[g] AS [g]
            FROM (
              SELECT
                CAST(CAST([days] AS FLOAT) AS FLOAT) AS [v0],
                [patient] AS [unit],
                [patient] AS [k0]
              FROM (
                SELECT
                  [patient] AS [patient],
                  [ward] AS [ward],
                  [days] AS [days],
                  [photo] AS [photo]
                FROM (
                  SELECT
                    CAST([patient] AS BIGINT) AS [patient],
                    [ward] AS [ward],
                    CAST(CAST([days] AS FLOAT) AS FLOAT) AS [days],
                    [photo] AS [photo]
                  FROM [c].[public].[visits]
                ) AS [t]
                WHERE
                  (
                    CAST([days] AS FLOAT) > CAST('2.0' AS FLOAT)
                    AND CAST([days] AS FLOAT) <= CAST('1.7976931348623157e308' AS FLOAT)
                  )
                  OR (
                    CAST([days] AS FLOAT) IS NULL
                  )
              ) AS [t]
              WHERE
                NOT [patient] IS NULL
            ) AS [r]
            JOIN [keys] AS [p]
              ON [r].[k0] = [p].[k0]
          ) AS [a]
        ) AS [b]
      ) AS [c]
      WHERE
        [rank] <= 3
    ) AS [s]
  ) AS [h]
) AS [q]
GROUP BY
  [g];

SELECT
  [g],
  COALESCE(SUM([w]), 0) AS [s]
FROM (
  SELECT
    [g] AS [g],
    CAST(16777216 AS BIGINT) AS [w]
  FROM (
    SELECT DISTINCT
      [unit] AS [unit],
      [g] AS [g]
    FROM (
      SELECT
        [r].[unit] AS [unit],
        [p].[g] AS [g]
      FROM (
        SELECT
          [patient] AS [unit],
          [patient] AS [k0]
        FROM (
          SELECT
            [patient] AS [patient],
            [ward] AS [ward],
            [days] AS [days],
            [photo] AS [photo]
          FROM (
            SELECT
              CAST([patient] AS BIGINT) AS [patient],
              [ward] AS [ward],
              CAST(CAST([days] AS FLOAT) AS FLOAT) AS [days],
              [photo] AS [photo]
            FROM [c].[public].[visits]
          ) AS [t]
          WHERE
            (
              CAST([days] AS FLOAT) > CAST('2.0' AS FLOAT)
              AND CAST([days] AS FLOAT) <= CAST('1.7976931348623157e308' AS FLOAT)
            )
            OR (
              CAST([days] AS FLOAT) IS NULL
            )
        ) AS [t]
        WHERE
          NOT [patient] IS NULL
      ) AS [r]
      JOIN [keys] AS [p]
        ON [r].[k0] = [p].[k0]
    ) AS [i]
  ) AS [d]
) AS [q]
GROUP BY
  [g];
