SELECT
  `g`,
  COALESCE(SUM(`w`), 0) AS `s`,
  COALESCE(SUM(CAST(FLOOR(CAST(`w` AS FLOAT64) * `v0`) AS INT64)), 0) AS `s_0_0`,
  COALESCE(SUM(CASE WHEN `v0` IS NULL THEN `w` ELSE 0 END), 0) AS `s_0_1`
FROM (
  SELECT
    `g`,
    `w`,
    CASE
      WHEN `v0` < CAST('0.0' AS FLOAT64)
      THEN CAST('0.0' AS FLOAT64)
      WHEN `v0` > CAST('30.0' AS FLOAT64)
      THEN CAST('1.0' AS FLOAT64)
      ELSE `v0` / CAST('30.0' AS FLOAT64)
    END AS `v0`
  FROM (
    SELECT
      `g`,
      `v0`,
      (
        DIV(
          CAST(50331648 AS INT64),
          CASE
            WHEN COUNT(*) OVER (PARTITION BY `unit`) > CAST(3 AS INT64)
            THEN COUNT(*) OVER (PARTITION BY `unit`)
            ELSE CAST(3 AS INT64)
          END
        )
      ) AS `w`
    FROM (
      SELECT
        `r`.`v0`,
        `r`.`unit`,
        `p`.`g`
      FROM (
        SELECT
          CAST(CAST(`days` AS FLOAT64) AS FLOAT64) AS `v0`,
          `patient` AS `unit`,
          `patient` AS `k0`
        FROM (
          SELECT
            `patient`,
            `ward`,
            `days`,
            `photo`
          FROM (
            SELECT
              CAST(`patient` AS INT64) AS `patient`,
              CAST(`ward` AS STRING) AS `ward`,
              CAST(CASE WHEN NOT IS_NAN(CAST(`days` AS FLOAT64)) THEN CAST(`days` AS FLOAT64) END AS FLOAT64) AS `days`,
              `photo` AS `photo`
            FROM `c`.`public`.`visits`
          ) AS `t`
          WHERE
            (
              CAST(`days` AS FLOAT64) > CAST('2.0' AS FLOAT64)
              AND CAST(`days` AS FLOAT64) <= CAST('Infinity' AS FLOAT64)
            )
            OR (
              CAST(`days` AS FLOAT64) IS NULL
            )
        ) AS `t`
        WHERE
          NOT `patient` IS NULL
      ) AS `r`
      JOIN `keys` AS `p`
        ON `r`.`k0` = `p`.`k0`
    ) AS `i`
  ) AS `h`
) AS `q`
GROUP BY
  `g`;

SELECT
  `g`,
  COALESCE(SUM(`w`), 0) AS `s`
FROM (
  SELECT
    `g`,
    CAST(16777216 AS INT64) AS `w`
  FROM (
    SELECT DISTINCT
      `unit`,
      `g`
    FROM (
      SELECT
        `r`.`unit`,
        `p`.`g`
      FROM (
        SELECT
          `patient` AS `unit`,
          `patient` AS `k0`
        FROM (
          SELECT
            `patient`,
            `ward`,
            `days`,
            `photo`
          FROM (
            SELECT
              CAST(`patient` AS INT64) AS `patient`,
              CAST(`ward` AS STRING) AS `ward`,
              CAST(CASE WHEN NOT IS_NAN(CAST(`days` AS FLOAT64)) THEN CAST(`days` AS FLOAT64) END AS FLOAT64) AS `days`,
              `photo` AS `photo`
            FROM `c`.`public`.`visits`
          ) AS `t`
          WHERE
            (
              CAST(`days` AS FLOAT64) > CAST('2.0' AS FLOAT64)
              AND CAST(`days` AS FLOAT64) <= CAST('Infinity' AS FLOAT64)
            )
            OR (
              CAST(`days` AS FLOAT64) IS NULL
            )
        ) AS `t`
        WHERE
          NOT `patient` IS NULL
      ) AS `r`
      JOIN `keys` AS `p`
        ON `r`.`k0` = `p`.`k0`
    ) AS `i`
  ) AS `d`
) AS `q`
GROUP BY
  `g`;

SELECT
  `g`,
  COALESCE(SUM(`w`), 0) AS `s`,
  COALESCE(SUM(CAST(FLOOR(CAST(`w` AS FLOAT64) * `v0`) AS INT64)), 0) AS `s_0_0`,
  COALESCE(SUM(CASE WHEN `v0` IS NULL THEN `w` ELSE 0 END), 0) AS `s_0_1`
FROM (
  SELECT
    `g`,
    `w`,
    CASE
      WHEN `v0` < CAST('0.0' AS FLOAT64)
      THEN CAST('0.0' AS FLOAT64)
      WHEN `v0` > CAST('30.0' AS FLOAT64)
      THEN CAST('1.0' AS FLOAT64)
      ELSE `v0` / CAST('30.0' AS FLOAT64)
    END AS `v0`
  FROM (
    SELECT
      `g`,
      `v0`,
      CAST(16777216 AS INT64) AS `w`
    FROM (
      SELECT
        `unit`,
        `g`,
        `v0`
      FROM (
        SELECT
          `unit`,
          `g`,
          `v0`,
          ROW_NUMBER() OVER (
            PARTITION BY `unit`
            ORDER BY TO_HEX(
              SHA256(
                (
                  'a key that is drawn for the release#0:#4:rows' || CASE WHEN `unit` IS NULL THEN 'n' ELSE 'v' END || CAST(LENGTH(COALESCE(CAST(`unit` AS STRING), '')) AS STRING) || ':' || COALESCE(CAST(`unit` AS STRING), '') || CASE WHEN `no` IS NULL THEN 'n' ELSE 'v' END || CAST(LENGTH(COALESCE(CAST(`no` AS STRING), '')) AS STRING) || ':' || COALESCE(CAST(`no` AS STRING), '')
                )
              )
            )
          ) AS `rank`
        FROM (
          SELECT
            `unit`,
            `g`,
            `v0`,
            ROW_NUMBER() OVER (PARTITION BY `unit` ORDER BY `g`, `v0`) AS `no`
          FROM (
            SELECT
              `r`.`v0`,
              `r`.`unit`,
              `p`.`g`
            FROM (
              SELECT
                CAST(CAST(`days` AS FLOAT64) AS FLOAT64) AS `v0`,
                `patient` AS `unit`,
                `patient` AS `k0`
              FROM (
                SELECT
                  `patient`,
                  `ward`,
                  `days`,
                  `photo`
                FROM (
                  SELECT
                    CAST(`patient` AS INT64) AS `patient`,
                    CAST(`ward` AS STRING) AS `ward`,
                    CAST(CASE WHEN NOT IS_NAN(CAST(`days` AS FLOAT64)) THEN CAST(`days` AS FLOAT64) END AS FLOAT64) AS `days`,
                    `photo` AS `photo`
                  FROM `c`.`public`.`visits`
                ) AS `t`
                WHERE
                  (
                    CAST(`days` AS FLOAT64) > CAST('2.0' AS FLOAT64)
                    AND CAST(`days` AS FLOAT64) <= CAST('Infinity' AS FLOAT64)
                  )
                  OR (
                    CAST(`days` AS FLOAT64) IS NULL
                  )
              ) AS `t`
              WHERE
                NOT `patient` IS NULL
            ) AS `r`
            JOIN `keys` AS `p`
              ON `r`.`k0` = `p`.`k0`
          ) AS `a`
        ) AS `b`
      ) AS `c`
      WHERE
        `rank` <= 3
    ) AS `s`
  ) AS `h`
) AS `q`
GROUP BY
  `g`;

SELECT
  `g`,
  COALESCE(SUM(`w`), 0) AS `s`
FROM (
  SELECT
    `g`,
    CAST(16777216 AS INT64) AS `w`
  FROM (
    SELECT DISTINCT
      `unit`,
      `g`
    FROM (
      SELECT
        `r`.`unit`,
        `p`.`g`
      FROM (
        SELECT
          `patient` AS `unit`,
          `patient` AS `k0`
        FROM (
          SELECT
            `patient`,
            `ward`,
            `days`,
            `photo`
          FROM (
            SELECT
              CAST(`patient` AS INT64) AS `patient`,
              CAST(`ward` AS STRING) AS `ward`,
              CAST(CASE WHEN NOT IS_NAN(CAST(`days` AS FLOAT64)) THEN CAST(`days` AS FLOAT64) END AS FLOAT64) AS `days`,
              `photo` AS `photo`
            FROM `c`.`public`.`visits`
          ) AS `t`
          WHERE
            (
              CAST(`days` AS FLOAT64) > CAST('2.0' AS FLOAT64)
              AND CAST(`days` AS FLOAT64) <= CAST('Infinity' AS FLOAT64)
            )
            OR (
              CAST(`days` AS FLOAT64) IS NULL
            )
        ) AS `t`
        WHERE
          NOT `patient` IS NULL
      ) AS `r`
      JOIN `keys` AS `p`
        ON `r`.`k0` = `p`.`k0`
    ) AS `i`
  ) AS `d`
) AS `q`
GROUP BY
  `g`;
