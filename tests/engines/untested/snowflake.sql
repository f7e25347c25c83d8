SELECT
  "g",
  COALESCE(SUM("w"), 0) AS "s",
  COALESCE(SUM(CAST(FLOOR(CAST("w" AS DOUBLE) * "v0") AS BIGINT)), 0) AS "s_0_0",
  COALESCE(SUM(CASE WHEN "v0" IS NULL THEN "w" ELSE 0 END), 0) AS "s_0_1"
FROM (
  SELECT
    "g",
    "w",
    CASE
      WHEN "v0" < CAST('0.0' AS DOUBLE)
      THEN CAST('0.0' AS DOUBLE)
      WHEN "v0" > CAST('30.0' AS DOUBLE)
      THEN CAST('1.0' AS DOUBLE)
      ELSE "v0" / CAST('30.0' AS DOUBLE)
    END AS "v0"
  FROM (
    SELECT
      "g",
      "v0",
      CAST((
        CAST(50331648 AS BIGINT) - CAST(50331648 AS BIGINT) % CASE
          WHEN COUNT(*) OVER (PARTITION BY "unit") > CAST(3 AS BIGINT)
          THEN COUNT(*) OVER (PARTITION BY "unit")
          ELSE CAST(3 AS BIGINT)
        END
      ) / CASE
        WHEN COUNT(*) OVER (PARTITION BY "unit") > CAST(3 AS BIGINT)
        THEN COUNT(*) OVER (PARTITION BY "unit")
        ELSE CAST(3 AS BIGINT)
      END AS BIGINT) AS "w"
    FROM (
      SELECT
        "r"."v0",
        "r"."unit",
        "p"."g"
      FROM (
        SELECT
          CAST(CAST("days" AS DOUBLE) AS DOUBLE) AS "v0",
          "patient" AS "unit",
          "patient" AS "k0"
        FROM (
          SELECT
            "patient",
            "ward",
            "days",
            "photo"
          FROM (
            SELECT
              CAST("patient" AS BIGINT) AS "patient",
              CAST("ward" AS VARCHAR) AS "ward",
              CAST(NULLIF(CAST("days" AS DOUBLE), CAST('NaN' AS DOUBLE)) AS DOUBLE) AS "days",
              "photo" AS "photo"
            FROM "c"."public"."visits"
          ) AS "t"
          WHERE
            (
              CAST("days" AS DOUBLE) > CAST('2.0' AS DOUBLE)
              AND CAST("days" AS DOUBLE) <= CAST('Infinity' AS DOUBLE)
            )
            OR (
              CAST("days" AS DOUBLE) IS NULL
            )
        ) AS "t"
        WHERE
          NOT "patient" IS NULL
      ) AS "r"
      JOIN "keys" AS "p"
        ON "r"."k0" = "p"."k0"
    ) AS "i"
  ) AS "h"
) AS "q"
GROUP BY
  "g";

SELECT
  "g",
  COALESCE(SUM("w"), 0) AS "s"
FROM (
  SELECT
    "g",
    CAST(16777216 AS BIGINT) AS "w"
  FROM (
    SELECT DISTINCT
      "unit",
      "g"
    FROM (
      SELECT
        "r"."unit",
        "p"."g"
      FROM (
        SELECT
          "patient" AS "unit",
          "patient" AS "k0"
        FROM (
          SELECT
            "patient",
            "ward",
            "days",
            "photo"
          FROM (
            SELECT
              CAST("patient" AS BIGINT) AS "patient",
              CAST("ward" AS VARCHAR) AS "ward",
              CAST(NULLIF(CAST("days" AS DOUBLE), CAST('NaN' AS DOUBLE)) AS DOUBLE) AS "days",
              "photo" AS "photo"
            FROM "c"."public"."visits"
          ) AS "t"
          WHERE
            (
              CAST("days" AS DOUBLE) > CAST('2.0' AS DOUBLE)
              AND CAST("days" AS DOUBLE) <= CAST('Infinity' AS DOUBLE)
            )
            OR (
              CAST("days" AS DOUBLE) IS NULL
            )
        ) AS "t"
        WHERE
          NOT "patient" IS NULL
      ) AS "r"
      JOIN "keys" AS "p"
        ON "r"."k0" = "p"."k0"
    ) AS "i"
  ) AS "d"
) AS "q"
GROUP BY
  "g";

SELECT
  "g",
  COALESCE(SUM("w"), 0) AS "s",
  COALESCE(SUM(CAST(FLOOR(CAST("w" AS DOUBLE) * "v0") AS BIGINT)), 0) AS "s_0_0",
  COALESCE(SUM(CASE WHEN "v0" IS NULL THEN "w" ELSE 0 END), 0) AS "s_0_1"
FROM (
  SELECT
    "g",
    "w",
    CASE
      WHEN "v0" < CAST('0.0' AS DOUBLE)
      THEN CAST('0.0' AS DOUBLE)
      WHEN "v0" > CAST('30.0' AS DOUBLE)
      THEN CAST('1.0' AS DOUBLE)
      ELSE "v0" / CAST('30.0' AS DOUBLE)
    END AS "v0"
  FROM (
    SELECT
      "g",
      "v0",
      CAST(16777216 AS BIGINT) AS "w"
    FROM (
      SELECT
        "unit",
        "g",
        "v0"
      FROM (
        SELECT
          "unit",
          "g",
          "v0",
          ROW_NUMBER() OVER (
            PARTITION BY "unit"
            ORDER BY SHA2(
              (
                'a key that is drawn for the release#0:#4:rows' || CASE WHEN "unit" IS NULL THEN 'n' ELSE 'v' END || CAST(LENGTH(COALESCE(CAST("unit" AS VARCHAR), '')) AS VARCHAR) || ':' || COALESCE(CAST("unit" AS VARCHAR), '') || CASE WHEN "no" IS NULL THEN 'n' ELSE 'v' END || CAST(LENGTH(COALESCE(CAST("no" AS VARCHAR), '')) AS VARCHAR) || ':' || COALESCE(CAST("no" AS VARCHAR), '')
              ),
              256
            ) NULLS FIRST
          ) AS "rank"
        FROM (
          SELECT
            "unit",
            "g",
            "v0",
            ROW_NUMBER() OVER (PARTITION BY "unit" ORDER BY "g" NULLS FIRST, "v0" NULLS FIRST) AS "no"
          FROM (
            SELECT
              "r"."v0",
              "r"."unit",
              "p"."g"
            FROM (
              SELECT
                CAST(CAST("days" AS DOUBLE) AS DOUBLE) AS "v0",
                "patient" AS "unit",
                "patient" AS "k0"
              FROM (
                SELECT
                  "patient",
                  "ward",
                  "days",
                  "photo"
                FROM (
                  SELECT
                    CAST("patient" AS BIGINT) AS "patient",
                    CAST("ward" AS VARCHAR) AS "ward",
                    CAST(NULLIF(CAST("days" AS DOUBLE), CAST('NaN' AS DOUBLE)) AS DOUBLE) AS "days",
                    "photo" AS "photo"
                  FROM "c"."public"."visits"
                ) AS "t"
                WHERE
                  (
                    CAST("days" AS DOUBLE) > CAST('2.0' AS DOUBLE)
                    AND CAST("days" AS DOUBLE) <= CAST('Infinity' AS DOUBLE)
                  )
                  OR (
                    CAST("days" AS DOUBLE) IS NULL
                  )
              ) AS "t"
              WHERE
                NOT "patient" IS NULL
            ) AS "r"
            JOIN "keys" AS "p"
              ON "r"."k0" = "p"."k0"
          ) AS "a"
        ) AS "b"
      ) AS "c"
      WHERE
        "rank" <= 3
    ) AS "s"
  ) AS "h"
) AS "q"
GROUP BY
  "g";

SELECT
  "g",
  COALESCE(SUM("w"), 0) AS "s"
FROM (
  SELECT
    "g",
    CAST(16777216 AS BIGINT) AS "w"
  FROM (
    SELECT DISTINCT
      "unit",
      "g"
    FROM (
      SELECT
        "r"."unit",
        "p"."g"
      FROM (
        SELECT
          "patient" AS "unit",
          "patient" AS "k0"
        FROM (
          SELECT
            "patient",
            "ward",
            "days",
            "photo"
          FROM (
            SELECT
              CAST("patient" AS BIGINT) AS "patient",
              CAST("ward" AS VARCHAR) AS "ward",
              CAST(NULLIF(CAST("days" AS DOUBLE), CAST('NaN' AS DOUBLE)) AS DOUBLE) AS "days",
              "photo" AS "photo"
            FROM "c"."public"."visits"
          ) AS "t"
          WHERE
            (
              CAST("days" AS DOUBLE) > CAST('2.0' AS DOUBLE)
              AND CAST("days" AS DOUBLE) <= CAST('Infinity' AS DOUBLE)
            )
            OR (
              CAST("days" AS DOUBLE) IS NULL
            )
        ) AS "t"
        WHERE
          NOT "patient" IS NULL
      ) AS "r"
      JOIN "keys" AS "p"
        ON "r"."k0" = "p"."k0"
    ) AS "i"
  ) AS "d"
) AS "q"
GROUP BY
  "g";
