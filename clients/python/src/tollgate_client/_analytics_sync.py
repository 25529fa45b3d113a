# Generated from the catalog and the OpenAPI document by `npm run generate`. Do not change it by hand.
# ruff: noqa
from __future__ import annotations

from datetime import date
from typing import Any, Literal, Sequence

from ._answer import Answers
from ._generated import (
    COUNTRIES,
    Country,
    SiteanalyticsKeywordsSuggestionsAnswer,
    SiteanalyticsWebsitesBacklinksAnswer,
    SiteanalyticsWebsitesKeywordsAnswer,
    SiteanalyticsKeywordsWebsitesAnswer,
    SiteanalyticsWebsitesTrafficSourcesAnswer,
    SiteanalyticsWebsitesOutgoingTrafficAnswer,
    SiteanalyticsWebsitesIncomingReferralsAnswer,
    SiteanalyticsWebsitesBrandedKeywordsAnswer,
    SiteanalyticsWebsitesGeographyAnswer,
    SiteanalyticsWebsitesDevicesAnswer,
    SiteanalyticsWebsitesSearchPerformanceAnswer,
    SiteanalyticsWebsitesSocialTrafficAnswer,
    SiteanalyticsWebsitesEngagementAnswer,
    SiteanalyticsWebsitesVisitsAnswer,
    SiteanalyticsWebsitesVisitsTableAnswer,
    SiteanalyticsWebsitesVisitsTrendAnswer,
    SiteanalyticsWebsitesRanksAnswer,
    SiteanalyticsWebsitesRanksCountryAnswer,
    SiteanalyticsWebsitesRanksGlobalAnswer,
    SiteanalyticsWebsitesRanksCategoryAnswer,
    SiteanalyticsWebsitesChannelsAnswer,
    SiteanalyticsWebsitesSimilarSitesAnswer,
    SiteanalyticsWebsitesSimilarSitesSuggestionsAnswerItem,
    SiteanalyticsWebsitesHistoryVisitsAnswer,
    SiteanalyticsWebsitesHistoryBounceRateAnswer,
    SiteanalyticsWebsitesHistoryVisitDurationAnswer,
    SiteanalyticsWebsitesHistoryPagesPerVisitAnswer,
)
from ._policy import Ask, CallOptions, query_of
from ._transport_sync import Transport


class Keywords:
    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def suggestions(
        self,
        *,
        keyword: str,
        country: Country | None = None,
        from_: str | date | None = None,
        to: str | date | None = None,
        latest: str | None = None,
        sort: str | None = None,
        asc: bool | None = None,
        page: int | None = None,
        rows_per_page: int | None = None,
        type: Literal["Broad", "Phrase", "Exact", "Related"] | None = None,
        websource: Literal["Total", "Desktop", "MobileWeb"] | None = None,
        is_window: bool | None = None,
        range_filter: str | None = None,
        options: CallOptions | None = None,
    ) -> SiteanalyticsKeywordsSuggestionsAnswer:
        """Keyword suggestions. Search keywords related to a keyword, with their volumes.

        Without dates: 28 rolling days that end three UTC days ago. `from` and `to` go together, and `from` must not be after `to`. `latest` does not go with `from` and `to`.

        Answer: Rows in `records` with keyword, windowVolume, cpc, difficulty and more; `totalRecords` counts them all.

        :param keyword: The keyword to start from. Takes text of 1 to 2048 UTF-8 bytes.
        :param country: Numeric country code; 999 is worldwide. Takes an integer of 0 or more, in plain digits. Default: 999.
        :param from_: First day, inclusive. Goes with `to`, and not with `latest`. Takes a real date as YYYY-MM-DD or YYYY|MM|DD.
        :param to: Last day, inclusive. Goes with `from`, and not with `latest`. Takes a real date as YYYY-MM-DD or YYYY|MM|DD.
        :param latest: The newest days or complete months instead of explicit dates. Takes 1d to 366d (rolling days).
        :param sort: The column to sort by. Takes text of 1 to 2048 UTF-8 bytes. Default: windowVolume.
        :param asc: Ascending order. Default: false.
        :param page: The page, counted from 1. Takes an integer from 1 to 1000, in plain digits.
        :param rows_per_page: Rows on a page. Takes an integer from 1 to 1000, in plain digits. Default: 100.
        :param type: How suggestions match. Default: Broad.
        :param websource: Which visits count. Default: Total.
        :param is_window: Whether the days are a rolling window. Without it: true for rolling days, false for months and explicit dates.
        :param range_filter: Bounds of columns. Takes filters of the form field,min,max with numbers as bounds, joined with | between filters.
        """
        params = {
            "keyword": keyword,
            "country": country,
            "from": from_,
            "to": to,
            "latest": latest,
            "sort": sort,
            "asc": asc,
            "page": page,
            "rowsPerPage": rows_per_page,
            "type": type,
            "websource": websource,
            "isWindow": is_window,
            "rangeFilter": range_filter,
        }
        ask = Ask("GET", "/v1/siteanalytics/keywords/suggestions", query=query_of(params, COUNTRIES), paid=True)
        return self._transport.model(SiteanalyticsKeywordsSuggestionsAnswer, ask, options)

    def websites(
        self,
        *,
        keys: str,
        country: Country | None = None,
        from_: str | date | None = None,
        to: str | date | None = None,
        latest: str | None = None,
        include_sub_domains: bool | None = None,
        is_window: bool | None = None,
        web_source: Literal["Total", "Desktop", "MobileWeb"] | None = None,
        time_granularity: Literal["Daily", "Monthly"] | None = None,
        sort: str | None = None,
        asc: bool | None = None,
        iso: str | None = None,
        is_daily: bool | None = None,
        tab: int | None = None,
        mtd: bool | None = None,
        selected_page_tab: Literal["Organic", "Paid"] | None = None,
        graph_duration: str | None = None,
        graph_type: int | None = None,
        is_duration_changed: bool | None = None,
        ignore_filter_consistency: bool | None = None,
        device: str | None = None,
        source_type: str | None = None,
        page: int | None = None,
        page_size: int | None = None,
        options: CallOptions | None = None,
    ) -> SiteanalyticsKeywordsWebsitesAnswer:
        """Websites that rank for a keyword. Websites that get visits from a search keyword. Here `keys` is a keyword, not a website.

        Without dates: 28 rolling days that end three UTC days ago. `from` and `to` go together, and `from` must not be after `to`. `latest` does not go with `from` and `to`.

        Answer: Rows in `Data` with Domain; `TotalCount` counts them all.

        :param keys: The search keyword. Takes text of 1 to 2048 UTF-8 bytes.
        :param country: Numeric country code; 999 is worldwide. Takes an integer of 0 or more, in plain digits. Default: 999.
        :param from_: First day, inclusive. Goes with `to`, and not with `latest`. Takes a real date as YYYY-MM-DD or YYYY|MM|DD.
        :param to: Last day, inclusive. Goes with `from`, and not with `latest`. Takes a real date as YYYY-MM-DD or YYYY|MM|DD.
        :param latest: The newest days or complete months instead of explicit dates. Takes 1d to 366d (rolling days).
        :param include_sub_domains: Whether subdomains count.
        :param is_window: Whether the days are a rolling window. Without it: true for rolling days, false for months and explicit dates.
        :param web_source: Which visits count. Default: Total.
        :param time_granularity: The step of a series.
        :param sort: The column to sort by. Takes text of 1 to 2048 UTF-8 bytes.
        :param asc: Ascending order.
        :param iso: Country as an ISO code, where the source takes one. Takes text of 1 to 2048 UTF-8 bytes.
        :param is_daily: Whether rows are given per day.
        :param tab: Tab of the native view. Takes an integer of 0 or more, in plain digits.
        :param mtd: Whether the present month counts so far.
        :param selected_page_tab: Organic or paid results. Default: Organic.
        :param graph_duration: Days of the trend. Takes text of 1 to 2048 UTF-8 bytes. Default: 28d.
        :param graph_type: Kind of trend. Takes an integer from 1 to 1000, in plain digits.
        :param is_duration_changed: Whether the days differ from the native default.
        :param ignore_filter_consistency: Whether filters that contradict each other pass.
        :param device: Which visits count. Takes text of 1 to 2048 UTF-8 bytes. Default: Total.
        :param source_type: Kind of search. Takes text of 1 to 2048 UTF-8 bytes. Default: organic.
        :param page: The page, counted from 1. Takes an integer from 1 to 1000, in plain digits.
        :param page_size: Rows on a page. Takes an integer from 1 to 1000, in plain digits.
        """
        params = {
            "keys": keys,
            "country": country,
            "from": from_,
            "to": to,
            "latest": latest,
            "includeSubDomains": include_sub_domains,
            "isWindow": is_window,
            "webSource": web_source,
            "timeGranularity": time_granularity,
            "sort": sort,
            "asc": asc,
            "iso": iso,
            "isDaily": is_daily,
            "tab": tab,
            "mtd": mtd,
            "selectedPageTab": selected_page_tab,
            "graphDuration": graph_duration,
            "graphType": graph_type,
            "isDurationChanged": is_duration_changed,
            "ignoreFilterConsistency": ignore_filter_consistency,
            "Device": device,
            "sourceType": source_type,
            "page": page,
            "pageSize": page_size,
        }
        ask = Ask("GET", "/v1/siteanalytics/keywords/websites", query=query_of(params, COUNTRIES), paid=True)
        return self._transport.model(SiteanalyticsKeywordsWebsitesAnswer, ask, options)


class Websites:
    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def backlinks(
        self,
        *,
        key: str,
        page: int | None = None,
        page_size: int | None = None,
        status: Literal["All", "Active", "New", "Lost"] | None = None,
        follow_type: Literal["All", "DoFollowOnly", "NoFollowOnly", "DoFollow", "NoFollow"] | None = None,
        domain_score_from: int | None = None,
        domain_score_to: int | None = None,
        sort: str | None = None,
        asc: bool | None = None,
        options: CallOptions | None = None,
    ) -> SiteanalyticsWebsitesBacklinksAnswer:
        """Backlinks. Pages that link to a website. The website is `Key`, with a capital K.

        `DomainScoreFrom` must not be after `DomainScoreTo`.

        Answer: Rows in `Records`; `TotalRecords` counts them all.

        :param key: The website to look up. Takes exactly one ASCII domain such as example.com, at most 253 characters, without scheme, path, port or spaces; internationalised names in punycode.
        :param page: The page, counted from 1. Takes an integer from 1 to 1000, in plain digits. Default: 1.
        :param page_size: Rows on a page. Takes an integer from 1 to 1000, in plain digits. Default: 100.
        :param status: Which links by age. Default: All.
        :param follow_type: Which links by rel. Default: All.
        :param domain_score_from: Least score of the linking domain. Takes an integer from 0 to 100, in plain digits.
        :param domain_score_to: Greatest score of the linking domain. Takes an integer from 0 to 100, in plain digits.
        :param sort: The column to sort by. Takes text of 1 to 2048 UTF-8 bytes. Default: DomainScore.
        :param asc: Ascending order. Default: false.
        """
        params = {
            "Key": key,
            "Page": page,
            "PageSize": page_size,
            "Status": status,
            "FollowType": follow_type,
            "DomainScoreFrom": domain_score_from,
            "DomainScoreTo": domain_score_to,
            "sort": sort,
            "asc": asc,
        }
        ask = Ask("GET", "/v1/siteanalytics/websites/backlinks", query=query_of(params, COUNTRIES), paid=True)
        return self._transport.model(SiteanalyticsWebsitesBacklinksAnswer, ask, options)

    def keywords(
        self,
        *,
        keys: str,
        country: Country | None = None,
        from_: str | date | None = None,
        to: str | date | None = None,
        latest: str | None = None,
        include_sub_domains: bool | None = None,
        is_window: bool | None = None,
        web_source: Literal["Total", "Desktop", "MobileWeb"] | None = None,
        time_granularity: Literal["Daily", "Monthly"] | None = None,
        sort: str | None = None,
        asc: bool | None = None,
        iso: str | None = None,
        is_daily: bool | None = None,
        include_branded: bool | None = None,
        include_none_branded: bool | None = None,
        page: int | None = None,
        page_size: int | None = None,
        source_type: str | None = None,
        page_filter_json: Sequence[Any] | str | None = None,
        options: CallOptions | None = None,
    ) -> SiteanalyticsWebsitesKeywordsAnswer:
        """Keywords of a website. Search keywords that bring visits. `latest=1m` is a one-month overview of 5 rows. For non-branded views use sourceType organic or paid with IncludeNoneBranded=true and IncludeBranded=false.

        Without dates: 28 rolling days that end three UTC days ago. `from` and `to` go together, and `from` must not be after `to`. `latest` does not go with `from` and `to`. With `latest=1m`, pageSize is 5 unless given.

        Answer: `Data.Records` with Keyword, Clicks, Share, KwVolume, Cpc and more; `TotalCount` counts them all.

        :param keys: The website to look up. Takes exactly one ASCII domain such as example.com, at most 253 characters, without scheme, path, port or spaces; internationalised names in punycode.
        :param country: Numeric country code; 999 is worldwide. Takes an integer of 0 or more, in plain digits. Default: 999.
        :param from_: First day, inclusive. Goes with `to`, and not with `latest`. Takes a real date as YYYY-MM-DD or YYYY|MM|DD.
        :param to: Last day, inclusive. Goes with `from`, and not with `latest`. Takes a real date as YYYY-MM-DD or YYYY|MM|DD.
        :param latest: The newest days or complete months instead of explicit dates. Takes 1d to 366d (rolling days), or 1m (complete UTC months).
        :param include_sub_domains: Whether subdomains count.
        :param is_window: Whether the days are a rolling window. Without it: true for rolling days, false for months and explicit dates.
        :param web_source: Which visits count. Default: Total.
        :param time_granularity: The step of a series.
        :param sort: The column to sort by. Takes text of 1 to 2048 UTF-8 bytes.
        :param asc: Ascending order.
        :param iso: Country as an ISO code, where the source takes one. Takes text of 1 to 2048 UTF-8 bytes.
        :param is_daily: Whether rows are given per day.
        :param include_branded: Whether branded keywords are included. Default: false.
        :param include_none_branded: Whether non-branded keywords are included. Default: false.
        :param page: The page, counted from 1. Takes an integer from 1 to 1000, in plain digits. Default: 1.
        :param page_size: Rows on a page. Takes an integer from 1 to 1000, in plain digits. Default: 100.
        :param source_type: Kind of search: all, organic or paid. Takes text of 1 to 2048 UTF-8 bytes. Default: all.
        :param page_filter_json: A JSON array of page filters. Without it the query is about the whole domain. Takes the text of a JSON array.
        """
        params = {
            "keys": keys,
            "country": country,
            "from": from_,
            "to": to,
            "latest": latest,
            "includeSubDomains": include_sub_domains,
            "isWindow": is_window,
            "webSource": web_source,
            "timeGranularity": time_granularity,
            "sort": sort,
            "asc": asc,
            "iso": iso,
            "isDaily": is_daily,
            "IncludeBranded": include_branded,
            "IncludeNoneBranded": include_none_branded,
            "page": page,
            "pageSize": page_size,
            "sourceType": source_type,
            "pageFilterJson": page_filter_json,
        }
        ask = Ask("GET", "/v1/siteanalytics/websites/keywords", query=query_of(params, COUNTRIES), paid=True)
        return self._transport.model(SiteanalyticsWebsitesKeywordsAnswer, ask, options)

    def traffic_sources(
        self,
        *,
        keys: str,
        country: Country | None = None,
        from_: str | date | None = None,
        to: str | date | None = None,
        latest: str | None = None,
        include_sub_domains: bool | None = None,
        is_window: bool | None = None,
        web_source: Literal["Total", "Desktop", "MobileWeb"] | None = None,
        time_granularity: Literal["Daily", "Monthly"] | None = None,
        source_type: str | None = None,
        ignore_filter_consistency: bool | None = None,
        page: int | None = None,
        order_by: str | None = None,
        options: CallOptions | None = None,
    ) -> SiteanalyticsWebsitesTrafficSourcesAnswer:
        """Traffic sources. Sources of visits by type. Another table than incoming-referrals.

        Without dates: 28 rolling days that end three UTC days ago. `from` and `to` go together, and `from` must not be after `to`. `latest` does not go with `from` and `to`.

        Answer: Rows in `Data`.

        :param keys: The website to look up. Takes exactly one ASCII domain such as example.com, at most 253 characters, without scheme, path, port or spaces; internationalised names in punycode.
        :param country: Numeric country code; 999 is worldwide. Takes an integer of 0 or more, in plain digits. Default: 999.
        :param from_: First day, inclusive. Goes with `to`, and not with `latest`. Takes a real date as YYYY-MM-DD or YYYY|MM|DD.
        :param to: Last day, inclusive. Goes with `from`, and not with `latest`. Takes a real date as YYYY-MM-DD or YYYY|MM|DD.
        :param latest: The newest days or complete months instead of explicit dates. Takes 1d to 366d (rolling days).
        :param include_sub_domains: Whether subdomains count.
        :param is_window: Whether the days are a rolling window. Without it: true for rolling days, false for months and explicit dates.
        :param web_source: Which visits count. Default: Total.
        :param time_granularity: The step of a series.
        :param source_type: Type of source. Takes text of 1 to 2048 UTF-8 bytes. Default: Referral.
        :param ignore_filter_consistency: Whether filters that contradict each other pass.
        :param page: The page, counted from 1. Takes an integer from 1 to 1000, in plain digits. Default: 1.
        :param order_by: Column and direction to sort by. Takes text of 1 to 2048 UTF-8 bytes. Default: Share desc.
        """
        params = {
            "keys": keys,
            "country": country,
            "from": from_,
            "to": to,
            "latest": latest,
            "includeSubDomains": include_sub_domains,
            "isWindow": is_window,
            "webSource": web_source,
            "timeGranularity": time_granularity,
            "sourceType": source_type,
            "ignoreFilterConsistency": ignore_filter_consistency,
            "page": page,
            "orderBy": order_by,
        }
        ask = Ask("GET", "/v1/siteanalytics/websites/traffic-sources", query=query_of(params, COUNTRIES), paid=True)
        return self._transport.model(SiteanalyticsWebsitesTrafficSourcesAnswer, ask, options)

    def outgoing_traffic(
        self,
        *,
        key: str,
        from_: str | date,
        to: str | date,
        country: Country | None = None,
        is_www: bool | None = None,
        is_window: bool | None = None,
        web_source: Literal["Total", "Desktop", "MobileWeb"] | None = None,
        orderby: str | None = None,
        order_by: str | None = None,
        sort: str | None = None,
        asc: bool | None = None,
        page: int | None = None,
        options: CallOptions | None = None,
    ) -> SiteanalyticsWebsitesOutgoingTrafficAnswer:
        """Outgoing traffic. Where visitors go next. `orderby` and `orderBy` are two parameters, forwarded independently: keep them the same.

        `from` and `to` go together, and `from` must not be after `to`.

        Answer: Rows in `Records`; `TotalCount` is the total at the source, not the length of the page.

        :param key: The website to look up. Takes exactly one ASCII domain such as example.com, at most 253 characters, without scheme, path, port or spaces; internationalised names in punycode.
        :param country: Numeric country code; 999 is worldwide. Takes an integer of 0 or more, in plain digits. Default: 999.
        :param from_: First day, inclusive. Takes a real date as YYYY-MM-DD or YYYY|MM|DD.
        :param to: Last day, inclusive. Takes a real date as YYYY-MM-DD or YYYY|MM|DD.
        :param is_www: Whether only the www host counts. Default: false.
        :param is_window: Whether the days are a rolling window. Default: false.
        :param web_source: Which visits count. Default: Total.
        :param orderby: Column and direction to sort by. Takes text of 1 to 2048 UTF-8 bytes. Default: Share desc.
        :param order_by: Column and direction to sort by. Takes text of 1 to 2048 UTF-8 bytes. Default: Share desc.
        :param sort: The column to sort by. Takes text of 1 to 2048 UTF-8 bytes. Default: Share.
        :param asc: Ascending order. Default: false.
        :param page: The page, counted from 1. Takes an integer from 1 to 1000, in plain digits. Default: 1.
        """
        params = {
            "key": key,
            "country": country,
            "from": from_,
            "to": to,
            "isWWW": is_www,
            "isWindow": is_window,
            "webSource": web_source,
            "orderby": orderby,
            "orderBy": order_by,
            "sort": sort,
            "asc": asc,
            "page": page,
        }
        ask = Ask("GET", "/v1/siteanalytics/websites/outgoing-traffic", query=query_of(params, COUNTRIES), paid=True)
        return self._transport.model(SiteanalyticsWebsitesOutgoingTrafficAnswer, ask, options)

    def incoming_referrals(
        self,
        *,
        key: str,
        country: Country | None = None,
        from_: str | date | None = None,
        to: str | date | None = None,
        is_www: bool | None = None,
        iso: str | None = None,
        is_window: bool | None = None,
        is_daily: bool | None = None,
        latest: str | None = None,
        web_source: Literal["Total", "Desktop", "MobileWeb"] | None = None,
        selected_tab: Literal["incomingTraffic"] | None = None,
        order_by: str | None = None,
        ignore_filter_consistency: bool | None = None,
        page: int | None = None,
        options: CallOptions | None = None,
    ) -> SiteanalyticsWebsitesIncomingReferralsAnswer:
        """Incoming referrals. Websites that send visitors.

        Without dates: 28 rolling days that end three UTC days ago. `from` and `to` go together, and `from` must not be after `to`. `latest` does not go with `from` and `to`.

        Answer: Rows in `Records`, 100 a page; native fields may include SiteOrigins and TotalShare.

        :param key: The website to look up. Takes exactly one ASCII domain such as example.com, at most 253 characters, without scheme, path, port or spaces; internationalised names in punycode.
        :param country: Numeric country code; 999 is worldwide. Takes an integer of 0 or more, in plain digits. Default: 999.
        :param from_: First day, inclusive. Goes with `to`, and not with `latest`. Takes a real date as YYYY-MM-DD or YYYY|MM|DD.
        :param to: Last day, inclusive. Goes with `from`, and not with `latest`. Takes a real date as YYYY-MM-DD or YYYY|MM|DD.
        :param is_www: Whether only the www host counts. Default: false.
        :param iso: Country as an ISO code, where the source takes one. Takes text of 1 to 2048 UTF-8 bytes.
        :param is_window: Whether the days are a rolling window. Without it: true for rolling days, false for months and explicit dates.
        :param is_daily: Whether rows are given per day. Default: false.
        :param latest: The newest days or complete months instead of explicit dates. Takes 1d to 366d (rolling days).
        :param web_source: Which visits count. Default: Total.
        :param selected_tab: Tab of the native view. Default: incomingTraffic.
        :param order_by: Column and direction to sort by. Takes text of 1 to 2048 UTF-8 bytes. Default: TotalShare desc.
        :param ignore_filter_consistency: Whether filters that contradict each other pass. Default: false.
        :param page: The page, counted from 1. Takes an integer from 1 to 1000, in plain digits. Default: 1.
        """
        params = {
            "key": key,
            "country": country,
            "from": from_,
            "to": to,
            "isWWW": is_www,
            "iso": iso,
            "isWindow": is_window,
            "isDaily": is_daily,
            "latest": latest,
            "webSource": web_source,
            "selectedTab": selected_tab,
            "orderBy": order_by,
            "ignoreFilterConsistency": ignore_filter_consistency,
            "page": page,
        }
        ask = Ask("GET", "/v1/siteanalytics/websites/incoming-referrals", query=query_of(params, COUNTRIES), paid=True)
        return self._transport.model(SiteanalyticsWebsitesIncomingReferralsAnswer, ask, options)

    def branded_keywords(
        self,
        *,
        keys: str,
        country: Country | None = None,
        from_: str | date | None = None,
        to: str | date | None = None,
        latest: str | None = None,
        include_sub_domains: bool | None = None,
        is_window: bool | None = None,
        web_source: Literal["Total", "Desktop", "MobileWeb"] | None = None,
        time_granularity: Literal["Daily", "Monthly"] | None = None,
        duration: Literal["1m"] | None = None,
        options: CallOptions | None = None,
    ) -> SiteanalyticsWebsitesBrandedKeywordsAnswer:
        """Branded and other keywords. How much search traffic comes from keywords with the brand in them.

        Without dates: the previous complete UTC month. `from` and `to` go together, and `from` must not be after `to`. `latest` does not go with `from` and `to`. Months in `latest` do not go with `isWindow=true`.

        Answer: `Data.<domain>` with Branded and NoneBranded.

        :param keys: The website to look up. Takes exactly one ASCII domain such as example.com, at most 253 characters, without scheme, path, port or spaces; internationalised names in punycode.
        :param country: Numeric country code; 999 is worldwide. Takes an integer of 0 or more, in plain digits. Default: 999.
        :param from_: First day, inclusive. Goes with `to`, and not with `latest`. Takes a real date as YYYY-MM-DD or YYYY|MM|DD.
        :param to: Last day, inclusive. Goes with `from`, and not with `latest`. Takes a real date as YYYY-MM-DD or YYYY|MM|DD.
        :param latest: The newest days or complete months instead of explicit dates. Takes 1d to 366d (rolling days), or 1m, 2m, 3m, 6m (complete UTC months).
        :param include_sub_domains: Whether subdomains count.
        :param is_window: Whether the days are a rolling window. Without it: true for rolling days, false for months and explicit dates.
        :param web_source: Which visits count. Default: Total.
        :param time_granularity: The step of a series.
        :param duration: Only one month.
        """
        params = {
            "keys": keys,
            "country": country,
            "from": from_,
            "to": to,
            "latest": latest,
            "includeSubDomains": include_sub_domains,
            "isWindow": is_window,
            "webSource": web_source,
            "timeGranularity": time_granularity,
            "duration": duration,
        }
        ask = Ask("GET", "/v1/siteanalytics/websites/branded-keywords", query=query_of(params, COUNTRIES), paid=True)
        return self._transport.model(SiteanalyticsWebsitesBrandedKeywordsAnswer, ask, options)

    def geography(
        self,
        *,
        keys: str,
        country: Country | None = None,
        from_: str | date | None = None,
        to: str | date | None = None,
        latest: str | None = None,
        include_sub_domains: bool | None = None,
        is_window: bool | None = None,
        web_source: Literal["Total", "Desktop", "MobileWeb"] | None = None,
        time_granularity: Literal["Daily", "Monthly"] | None = None,
        page_size: int | None = None,
        order_by: str | None = None,
        options: CallOptions | None = None,
    ) -> SiteanalyticsWebsitesGeographyAnswer:
        """Geography. Visits by country.

        Without dates: the previous 3 complete UTC months. `from` and `to` go together, and `from` must not be after `to`. `latest` does not go with `from` and `to`. Months in `latest` do not go with `isWindow=true`.

        Answer: Rows in `Data` with Country, Share, Rank and engagement by country.

        :param keys: The website to look up. Takes exactly one ASCII domain such as example.com, at most 253 characters, without scheme, path, port or spaces; internationalised names in punycode.
        :param country: Numeric country code; 999 is worldwide. Takes an integer of 0 or more, in plain digits. Default: 999.
        :param from_: First day, inclusive. Goes with `to`, and not with `latest`. Takes a real date as YYYY-MM-DD or YYYY|MM|DD.
        :param to: Last day, inclusive. Goes with `from`, and not with `latest`. Takes a real date as YYYY-MM-DD or YYYY|MM|DD.
        :param latest: The newest days or complete months instead of explicit dates. Takes 1d to 366d (rolling days), or 1m, 2m, 3m, 6m (complete UTC months).
        :param include_sub_domains: Whether subdomains count.
        :param is_window: Whether the days are a rolling window. Without it: true for rolling days, false for months and explicit dates.
        :param web_source: Which visits count. Default: Total.
        :param time_granularity: The step of a series.
        :param page_size: Rows on a page. Takes an integer from 1 to 1000, in plain digits. Default: 5.
        :param order_by: Column and direction to sort by. Takes text of 1 to 2048 UTF-8 bytes. Default: TotalShare desc.
        """
        params = {
            "keys": keys,
            "country": country,
            "from": from_,
            "to": to,
            "latest": latest,
            "includeSubDomains": include_sub_domains,
            "isWindow": is_window,
            "webSource": web_source,
            "timeGranularity": time_granularity,
            "pageSize": page_size,
            "orderBy": order_by,
        }
        ask = Ask("GET", "/v1/siteanalytics/websites/geography", query=query_of(params, COUNTRIES), paid=True)
        return self._transport.model(SiteanalyticsWebsitesGeographyAnswer, ask, options)

    def devices(
        self,
        *,
        keys: str,
        country: Country | None = None,
        from_: str | date | None = None,
        to: str | date | None = None,
        latest: str | None = None,
        include_sub_domains: bool | None = None,
        is_window: bool | None = None,
        web_source: Literal["Total", "Desktop", "MobileWeb"] | None = None,
        time_granularity: Literal["Daily", "Monthly"] | None = None,
        should_get_verified_data: bool | None = None,
        options: CallOptions | None = None,
    ) -> SiteanalyticsWebsitesDevicesAnswer:
        """Devices. Visits by desktop and mobile web.

        Without dates: the previous 3 complete UTC months. `from` and `to` go together, and `from` must not be after `to`. `latest` does not go with `from` and `to`. Months in `latest` do not go with `isWindow=true`.

        Answer: `Data.<domain>` with a number by device.

        :param keys: The website to look up. Takes exactly one ASCII domain such as example.com, at most 253 characters, without scheme, path, port or spaces; internationalised names in punycode.
        :param country: Numeric country code; 999 is worldwide. Takes an integer of 0 or more, in plain digits. Default: 999.
        :param from_: First day, inclusive. Goes with `to`, and not with `latest`. Takes a real date as YYYY-MM-DD or YYYY|MM|DD.
        :param to: Last day, inclusive. Goes with `from`, and not with `latest`. Takes a real date as YYYY-MM-DD or YYYY|MM|DD.
        :param latest: The newest days or complete months instead of explicit dates. Takes 1d to 366d (rolling days), or 1m, 2m, 3m, 6m (complete UTC months).
        :param include_sub_domains: Whether subdomains count.
        :param is_window: Whether the days are a rolling window. Without it: true for rolling days, false for months and explicit dates.
        :param web_source: Which visits count. Default: Total.
        :param time_granularity: The step of a series.
        :param should_get_verified_data: Whether owner-verified figures replace estimates. Default: false.
        """
        params = {
            "keys": keys,
            "country": country,
            "from": from_,
            "to": to,
            "latest": latest,
            "includeSubDomains": include_sub_domains,
            "isWindow": is_window,
            "webSource": web_source,
            "timeGranularity": time_granularity,
            "ShouldGetVerifiedData": should_get_verified_data,
        }
        ask = Ask("GET", "/v1/siteanalytics/websites/devices", query=query_of(params, COUNTRIES), paid=True)
        return self._transport.model(SiteanalyticsWebsitesDevicesAnswer, ask, options)

    def search_performance(
        self,
        *,
        keys: str,
        country: Country | None = None,
        from_: str | date | None = None,
        to: str | date | None = None,
        latest: str | None = None,
        include_sub_domains: bool | None = None,
        is_window: bool | None = None,
        web_source: Literal["Total", "Desktop", "MobileWeb"] | None = None,
        time_granularity: Literal["Daily", "Monthly"] | None = None,
        page_size: int | None = None,
        duration: Literal["1m"] | None = None,
        source_type: Literal["Organic", "Paid"] | None = None,
        options: CallOptions | None = None,
    ) -> SiteanalyticsWebsitesSearchPerformanceAnswer:
        """Search performance. Top search terms. Paid keywords use `SourceType=Paid`; the spelling `sourceType` is not taken.

        Without dates: the previous complete UTC month. `from` and `to` go together, and `from` must not be after `to`. `latest` does not go with `from` and `to`. Months in `latest` do not go with `isWindow=true`.

        Answer: Rows in `Data` with SearchTerm, TotalShare and TotalVisits.

        :param keys: The website to look up. Takes exactly one ASCII domain such as example.com, at most 253 characters, without scheme, path, port or spaces; internationalised names in punycode.
        :param country: Numeric country code; 999 is worldwide. Takes an integer of 0 or more, in plain digits. Default: 999.
        :param from_: First day, inclusive. Goes with `to`, and not with `latest`. Takes a real date as YYYY-MM-DD or YYYY|MM|DD.
        :param to: Last day, inclusive. Goes with `from`, and not with `latest`. Takes a real date as YYYY-MM-DD or YYYY|MM|DD.
        :param latest: The newest days or complete months instead of explicit dates. Takes 1d to 366d (rolling days), or 1m, 2m, 3m, 6m (complete UTC months).
        :param include_sub_domains: Whether subdomains count.
        :param is_window: Whether the days are a rolling window. Without it: true for rolling days, false for months and explicit dates.
        :param web_source: Which visits count. Default: Total.
        :param time_granularity: The step of a series.
        :param page_size: Rows on a page. Takes an integer from 1 to 1000, in plain digits. Default: 5.
        :param duration: Only one month. Default: 1m.
        :param source_type: Organic or paid search. Default: Organic.
        """
        params = {
            "keys": keys,
            "country": country,
            "from": from_,
            "to": to,
            "latest": latest,
            "includeSubDomains": include_sub_domains,
            "isWindow": is_window,
            "webSource": web_source,
            "timeGranularity": time_granularity,
            "pageSize": page_size,
            "duration": duration,
            "SourceType": source_type,
        }
        ask = Ask("GET", "/v1/siteanalytics/websites/search-performance", query=query_of(params, COUNTRIES), paid=True)
        return self._transport.model(SiteanalyticsWebsitesSearchPerformanceAnswer, ask, options)

    def social_traffic(
        self,
        *,
        keys: str,
        country: Country | None = None,
        from_: str | date | None = None,
        to: str | date | None = None,
        latest: str | None = None,
        include_sub_domains: bool | None = None,
        is_window: bool | None = None,
        time_granularity: Literal["Daily", "Monthly"] | None = None,
        options: CallOptions | None = None,
    ) -> SiteanalyticsWebsitesSocialTrafficAnswer:
        """Social traffic. Visits by social network.

        Without dates: the previous 3 complete UTC months. `from` and `to` go together, and `from` must not be after `to`. `latest` does not go with `from` and `to`. Months in `latest` do not go with `isWindow=true`.

        Answer: `Data.<domain>.<network>` with Share.

        :param keys: The website to look up. Takes exactly one ASCII domain such as example.com, at most 253 characters, without scheme, path, port or spaces; internationalised names in punycode.
        :param country: Numeric country code; 999 is worldwide. Takes an integer of 0 or more, in plain digits. Default: 999.
        :param from_: First day, inclusive. Goes with `to`, and not with `latest`. Takes a real date as YYYY-MM-DD or YYYY|MM|DD.
        :param to: Last day, inclusive. Goes with `from`, and not with `latest`. Takes a real date as YYYY-MM-DD or YYYY|MM|DD.
        :param latest: The newest days or complete months instead of explicit dates. Takes 1d to 366d (rolling days), or 1m, 2m, 3m, 6m (complete UTC months).
        :param include_sub_domains: Whether subdomains count.
        :param is_window: Whether the days are a rolling window. Without it: true for rolling days, false for months and explicit dates.
        :param time_granularity: The step of a series.
        """
        params = {
            "keys": keys,
            "country": country,
            "from": from_,
            "to": to,
            "latest": latest,
            "includeSubDomains": include_sub_domains,
            "isWindow": is_window,
            "timeGranularity": time_granularity,
        }
        ask = Ask("GET", "/v1/siteanalytics/websites/social-traffic", query=query_of(params, COUNTRIES), paid=True)
        return self._transport.model(SiteanalyticsWebsitesSocialTrafficAnswer, ask, options)

    def engagement(
        self,
        *,
        keys: str,
        country: Country | None = None,
        from_: str | date | None = None,
        to: str | date | None = None,
        latest: str | None = None,
        include_sub_domains: bool | None = None,
        is_window: bool | None = None,
        web_source: Literal["Total", "Desktop", "MobileWeb"] | None = None,
        time_granularity: Literal["Daily", "Monthly"] | None = None,
        should_get_verified_data: bool | None = None,
        include_leaders: bool | None = None,
        un_bounced: bool | None = None,
        beta: bool | None = None,
        options: CallOptions | None = None,
    ) -> SiteanalyticsWebsitesEngagementAnswer:
        """Engagement. Visits, bounce rate, pages per visit and visit duration.

        Without dates: 28 rolling days that end three UTC days ago. `from` and `to` go together, and `from` must not be after `to`. `latest` does not go with `from` and `to`. Months in `latest` do not go with `isWindow=true`.

        Answer: Rows in `Data`; they may contain AvgMonthVisits, BounceRate, PagesPerVisit, AvgVisitDuration.

        :param keys: The website to look up. Takes exactly one ASCII domain such as example.com, at most 253 characters, without scheme, path, port or spaces; internationalised names in punycode.
        :param country: Numeric country code; 999 is worldwide. Takes an integer of 0 or more, in plain digits. Default: 999.
        :param from_: First day, inclusive. Goes with `to`, and not with `latest`. Takes a real date as YYYY-MM-DD or YYYY|MM|DD.
        :param to: Last day, inclusive. Goes with `from`, and not with `latest`. Takes a real date as YYYY-MM-DD or YYYY|MM|DD.
        :param latest: The newest days or complete months instead of explicit dates. Takes 1d to 366d (rolling days), or 1m, 2m, 3m, 6m (complete UTC months).
        :param include_sub_domains: Whether subdomains count.
        :param is_window: Whether the days are a rolling window. Without it: true for rolling days, false for months and explicit dates.
        :param web_source: Which visits count. Default: Total.
        :param time_granularity: The step of a series.
        :param should_get_verified_data: Whether owner-verified figures replace estimates. Default: false.
        :param include_leaders: Whether category leaders are included. Default: true.
        :param un_bounced: Whether bounced visits are left out. Default: false.
        :param beta: Whether figures of the new method are used.
        """
        params = {
            "keys": keys,
            "country": country,
            "from": from_,
            "to": to,
            "latest": latest,
            "includeSubDomains": include_sub_domains,
            "isWindow": is_window,
            "webSource": web_source,
            "timeGranularity": time_granularity,
            "ShouldGetVerifiedData": should_get_verified_data,
            "includeLeaders": include_leaders,
            "unBounced": un_bounced,
            "beta": beta,
        }
        ask = Ask("GET", "/v1/siteanalytics/websites/engagement", query=query_of(params, COUNTRIES), paid=True)
        return self._transport.model(SiteanalyticsWebsitesEngagementAnswer, ask, options)

    def visits(
        self,
        *,
        keys: str,
        country: Country | None = None,
        from_: str | date | None = None,
        to: str | date | None = None,
        latest: str | None = None,
        include_sub_domains: bool | None = None,
        is_window: bool | None = None,
        web_source: Literal["Total", "Desktop", "MobileWeb"] | None = None,
        time_granularity: Literal["Monthly"] | None = None,
        compare_from: str | date | None = None,
        compare_to: str | date | None = None,
        should_get_verified_data: bool | None = None,
        options: CallOptions | None = None,
    ) -> SiteanalyticsWebsitesVisitsAnswer:
        """Visits. Total visits, with a comparison. A rolling total need not equal a complete-month total.

        Without dates: 28 rolling days that end three UTC days ago. `from` and `to` go together, and `from` must not be after `to`. `compareFrom` and `compareTo` go together, and `compareFrom` must not be after `compareTo`. `latest` does not go with `from` and `to`. Months in `latest` do not go with `isWindow=true`.

        Answer: `Data.<domain>`; it may contain TotalVisits, Change, ShareOfVisits.

        :param keys: The website to look up. Takes exactly one ASCII domain such as example.com, at most 253 characters, without scheme, path, port or spaces; internationalised names in punycode.
        :param country: Numeric country code; 999 is worldwide. Takes an integer of 0 or more, in plain digits. Default: 999.
        :param from_: First day, inclusive. Goes with `to`, and not with `latest`. Takes a real date as YYYY-MM-DD or YYYY|MM|DD.
        :param to: Last day, inclusive. Goes with `from`, and not with `latest`. Takes a real date as YYYY-MM-DD or YYYY|MM|DD.
        :param latest: The newest days or complete months instead of explicit dates. Takes 1d to 366d (rolling days), or 1m, 2m, 3m, 6m (complete UTC months).
        :param include_sub_domains: Whether subdomains count.
        :param is_window: Whether the days are a rolling window. Without it: true for rolling days, false for months and explicit dates.
        :param web_source: Which visits count. Default: Total.
        :param time_granularity: The step of a series.
        :param compare_from: First day of the period to compare with. Goes with `compareTo`. Takes a real date as YYYY-MM-DD or YYYY|MM|DD.
        :param compare_to: Last day of the period to compare with. Goes with `compareFrom`. Takes a real date as YYYY-MM-DD or YYYY|MM|DD.
        :param should_get_verified_data: Whether owner-verified figures replace estimates. Default: false.
        """
        params = {
            "keys": keys,
            "country": country,
            "from": from_,
            "to": to,
            "latest": latest,
            "includeSubDomains": include_sub_domains,
            "isWindow": is_window,
            "webSource": web_source,
            "timeGranularity": time_granularity,
            "compareFrom": compare_from,
            "compareTo": compare_to,
            "ShouldGetVerifiedData": should_get_verified_data,
        }
        ask = Ask("GET", "/v1/siteanalytics/websites/visits", query=query_of(params, COUNTRIES), paid=True)
        return self._transport.model(SiteanalyticsWebsitesVisitsAnswer, ask, options)

    def visits_table(
        self,
        *,
        keys: str,
        country: Country | None = None,
        from_: str | date | None = None,
        to: str | date | None = None,
        latest: str | None = None,
        include_sub_domains: bool | None = None,
        is_window: bool | None = None,
        web_source: Literal["Total", "Desktop", "MobileWeb"] | None = None,
        time_granularity: Literal["Monthly"] | None = None,
        compare_from: str | date | None = None,
        compare_to: str | date | None = None,
        should_get_verified_data: bool | None = None,
        options: CallOptions | None = None,
    ) -> SiteanalyticsWebsitesVisitsTableAnswer:
        """Visits, as a table. Total visits in rows.

        Without dates: 28 rolling days that end three UTC days ago. `from` and `to` go together, and `from` must not be after `to`. `compareFrom` and `compareTo` go together, and `compareFrom` must not be after `compareTo`. `latest` does not go with `from` and `to`. Months in `latest` do not go with `isWindow=true`.

        Answer: Rows in `Data` with Domain and TotalVisits. `TotalCount` can be 0 while `Data` has rows: test the array.

        :param keys: The website to look up. Takes exactly one ASCII domain such as example.com, at most 253 characters, without scheme, path, port or spaces; internationalised names in punycode.
        :param country: Numeric country code; 999 is worldwide. Takes an integer of 0 or more, in plain digits. Default: 999.
        :param from_: First day, inclusive. Goes with `to`, and not with `latest`. Takes a real date as YYYY-MM-DD or YYYY|MM|DD.
        :param to: Last day, inclusive. Goes with `from`, and not with `latest`. Takes a real date as YYYY-MM-DD or YYYY|MM|DD.
        :param latest: The newest days or complete months instead of explicit dates. Takes 1d to 366d (rolling days), or 1m, 2m, 3m, 6m (complete UTC months).
        :param include_sub_domains: Whether subdomains count.
        :param is_window: Whether the days are a rolling window. Without it: true for rolling days, false for months and explicit dates.
        :param web_source: Which visits count. Default: Total.
        :param time_granularity: The step of a series.
        :param compare_from: First day of the period to compare with. Goes with `compareTo`. Takes a real date as YYYY-MM-DD or YYYY|MM|DD.
        :param compare_to: Last day of the period to compare with. Goes with `compareFrom`. Takes a real date as YYYY-MM-DD or YYYY|MM|DD.
        :param should_get_verified_data: Whether owner-verified figures replace estimates. Default: false.
        """
        params = {
            "keys": keys,
            "country": country,
            "from": from_,
            "to": to,
            "latest": latest,
            "includeSubDomains": include_sub_domains,
            "isWindow": is_window,
            "webSource": web_source,
            "timeGranularity": time_granularity,
            "compareFrom": compare_from,
            "compareTo": compare_to,
            "ShouldGetVerifiedData": should_get_verified_data,
        }
        ask = Ask("GET", "/v1/siteanalytics/websites/visits/table", query=query_of(params, COUNTRIES), paid=True)
        return self._transport.model(SiteanalyticsWebsitesVisitsTableAnswer, ask, options)

    def visits_trend(
        self,
        *,
        keys: str,
        country: Country | None = None,
        from_: str | date | None = None,
        to: str | date | None = None,
        latest: str | None = None,
        include_sub_domains: bool | None = None,
        is_window: bool | None = None,
        web_source: Literal["Total", "Desktop", "MobileWeb"] | None = None,
        time_granularity: Literal["Daily", "Weekly", "Monthly"] | None = None,
        should_get_verified_data: bool | None = None,
        options: CallOptions | None = None,
    ) -> SiteanalyticsWebsitesVisitsTrendAnswer:
        """Visits over time. A series of visits.

        Without dates: 28 rolling days that end three UTC days ago. `from` and `to` go together, and `from` must not be after `to`. `latest` does not go with `from` and `to`. Months in `latest` do not go with `isWindow=true`.

        Answer: `Data.<domain>.<source>`: an array of series, each of Key/Value points.

        :param keys: The website to look up. Takes exactly one ASCII domain such as example.com, at most 253 characters, without scheme, path, port or spaces; internationalised names in punycode.
        :param country: Numeric country code; 999 is worldwide. Takes an integer of 0 or more, in plain digits. Default: 999.
        :param from_: First day, inclusive. Goes with `to`, and not with `latest`. Takes a real date as YYYY-MM-DD or YYYY|MM|DD.
        :param to: Last day, inclusive. Goes with `from`, and not with `latest`. Takes a real date as YYYY-MM-DD or YYYY|MM|DD.
        :param latest: The newest days or complete months instead of explicit dates. Takes 1d to 366d (rolling days), or 1m, 2m, 3m, 6m (complete UTC months).
        :param include_sub_domains: Whether subdomains count.
        :param is_window: Whether the days are a rolling window. Without it: true for rolling days, false for months and explicit dates.
        :param web_source: Which visits count. Default: Total.
        :param time_granularity: The step of a series.
        :param should_get_verified_data: Whether owner-verified figures replace estimates. Default: false.
        """
        params = {
            "keys": keys,
            "country": country,
            "from": from_,
            "to": to,
            "latest": latest,
            "includeSubDomains": include_sub_domains,
            "isWindow": is_window,
            "webSource": web_source,
            "timeGranularity": time_granularity,
            "ShouldGetVerifiedData": should_get_verified_data,
        }
        ask = Ask("GET", "/v1/siteanalytics/websites/visits/trend", query=query_of(params, COUNTRIES), paid=True)
        return self._transport.model(SiteanalyticsWebsitesVisitsTrendAnswer, ask, options)

    def ranks(
        self,
        *,
        keys: str,
        country: Country | None = None,
        from_: str | date | None = None,
        to: str | date | None = None,
        latest: str | None = None,
        include_sub_domains: bool | None = None,
        is_window: bool | None = None,
        web_source: Literal["Total", "Desktop", "MobileWeb"] | None = None,
        time_granularity: Literal["Monthly"] | None = None,
        options: CallOptions | None = None,
    ) -> SiteanalyticsWebsitesRanksAnswer:
        """Ranks. Global, country and category rank in one answer.

        Without dates: 28 rolling days that end three UTC days ago. `from` and `to` go together, and `from` must not be after `to`. `latest` does not go with `from` and `to`. Months in `latest` do not go with `isWindow=true`.

        Answer: `Data.<domain>` with separate GlobalRank, CountryRank and CategoryRank objects.

        :param keys: The website to look up. Takes exactly one ASCII domain such as example.com, at most 253 characters, without scheme, path, port or spaces; internationalised names in punycode.
        :param country: Numeric country code; 999 is worldwide. Takes an integer of 0 or more, in plain digits. Default: 999.
        :param from_: First day, inclusive. Goes with `to`, and not with `latest`. Takes a real date as YYYY-MM-DD or YYYY|MM|DD.
        :param to: Last day, inclusive. Goes with `from`, and not with `latest`. Takes a real date as YYYY-MM-DD or YYYY|MM|DD.
        :param latest: The newest days or complete months instead of explicit dates. Takes 1d to 366d (rolling days), or 1m, 2m, 3m, 6m (complete UTC months).
        :param include_sub_domains: Whether subdomains count.
        :param is_window: Whether the days are a rolling window. Without it: true for rolling days, false for months and explicit dates.
        :param web_source: Which visits count. Default: Total.
        :param time_granularity: The step of a series.
        """
        params = {
            "keys": keys,
            "country": country,
            "from": from_,
            "to": to,
            "latest": latest,
            "includeSubDomains": include_sub_domains,
            "isWindow": is_window,
            "webSource": web_source,
            "timeGranularity": time_granularity,
        }
        ask = Ask("GET", "/v1/siteanalytics/websites/ranks", query=query_of(params, COUNTRIES), paid=True)
        return self._transport.model(SiteanalyticsWebsitesRanksAnswer, ask, options)

    def ranks_country(
        self,
        *,
        keys: str,
        country: Country | None = None,
        from_: str | date | None = None,
        to: str | date | None = None,
        latest: str | None = None,
        include_sub_domains: bool | None = None,
        is_window: bool | None = None,
        web_source: Literal["Total", "Desktop", "MobileWeb"] | None = None,
        time_granularity: Literal["Monthly"] | None = None,
        options: CallOptions | None = None,
    ) -> SiteanalyticsWebsitesRanksCountryAnswer:
        """Country rank, as a table. The country rank of a website.

        Without dates: 28 rolling days that end three UTC days ago. `from` and `to` go together, and `from` must not be after `to`. `latest` does not go with `from` and `to`. Months in `latest` do not go with `isWindow=true`.

        Answer: Rows in `Data` with Domain and Rank. `TotalCount` can be 0 while `Data` has rows: test the array itself.

        :param keys: The website to look up. Takes exactly one ASCII domain such as example.com, at most 253 characters, without scheme, path, port or spaces; internationalised names in punycode.
        :param country: Numeric country code; 999 is worldwide. Takes an integer of 0 or more, in plain digits. Default: 999.
        :param from_: First day, inclusive. Goes with `to`, and not with `latest`. Takes a real date as YYYY-MM-DD or YYYY|MM|DD.
        :param to: Last day, inclusive. Goes with `from`, and not with `latest`. Takes a real date as YYYY-MM-DD or YYYY|MM|DD.
        :param latest: The newest days or complete months instead of explicit dates. Takes 1d to 366d (rolling days), or 1m, 2m, 3m, 6m (complete UTC months).
        :param include_sub_domains: Whether subdomains count.
        :param is_window: Whether the days are a rolling window. Without it: true for rolling days, false for months and explicit dates.
        :param web_source: Which visits count. Default: Total.
        :param time_granularity: The step of a series.
        """
        params = {
            "keys": keys,
            "country": country,
            "from": from_,
            "to": to,
            "latest": latest,
            "includeSubDomains": include_sub_domains,
            "isWindow": is_window,
            "webSource": web_source,
            "timeGranularity": time_granularity,
        }
        ask = Ask("GET", "/v1/siteanalytics/websites/ranks/country", query=query_of(params, COUNTRIES), paid=True)
        return self._transport.model(SiteanalyticsWebsitesRanksCountryAnswer, ask, options)

    def ranks_global(
        self,
        *,
        keys: str,
        country: Country | None = None,
        from_: str | date | None = None,
        to: str | date | None = None,
        latest: str | None = None,
        include_sub_domains: bool | None = None,
        is_window: bool | None = None,
        web_source: Literal["Total", "Desktop", "MobileWeb"] | None = None,
        time_granularity: Literal["Monthly"] | None = None,
        options: CallOptions | None = None,
    ) -> SiteanalyticsWebsitesRanksGlobalAnswer:
        """Global rank, as a table. The global rank of a website.

        Without dates: 28 rolling days that end three UTC days ago. `from` and `to` go together, and `from` must not be after `to`. `latest` does not go with `from` and `to`. Months in `latest` do not go with `isWindow=true`.

        Answer: Rows in `Data` with Domain and Rank. `TotalCount` can be 0 while `Data` has rows: test the array itself.

        :param keys: The website to look up. Takes exactly one ASCII domain such as example.com, at most 253 characters, without scheme, path, port or spaces; internationalised names in punycode.
        :param country: Numeric country code; 999 is worldwide. Takes an integer of 0 or more, in plain digits. Default: 999.
        :param from_: First day, inclusive. Goes with `to`, and not with `latest`. Takes a real date as YYYY-MM-DD or YYYY|MM|DD.
        :param to: Last day, inclusive. Goes with `from`, and not with `latest`. Takes a real date as YYYY-MM-DD or YYYY|MM|DD.
        :param latest: The newest days or complete months instead of explicit dates. Takes 1d to 366d (rolling days), or 1m, 2m, 3m, 6m (complete UTC months).
        :param include_sub_domains: Whether subdomains count.
        :param is_window: Whether the days are a rolling window. Without it: true for rolling days, false for months and explicit dates.
        :param web_source: Which visits count. Default: Total.
        :param time_granularity: The step of a series.
        """
        params = {
            "keys": keys,
            "country": country,
            "from": from_,
            "to": to,
            "latest": latest,
            "includeSubDomains": include_sub_domains,
            "isWindow": is_window,
            "webSource": web_source,
            "timeGranularity": time_granularity,
        }
        ask = Ask("GET", "/v1/siteanalytics/websites/ranks/global", query=query_of(params, COUNTRIES), paid=True)
        return self._transport.model(SiteanalyticsWebsitesRanksGlobalAnswer, ask, options)

    def ranks_category(
        self,
        *,
        keys: str,
        country: Country | None = None,
        from_: str | date | None = None,
        to: str | date | None = None,
        latest: str | None = None,
        include_sub_domains: bool | None = None,
        is_window: bool | None = None,
        web_source: Literal["Total", "Desktop", "MobileWeb"] | None = None,
        time_granularity: Literal["Monthly"] | None = None,
        options: CallOptions | None = None,
    ) -> SiteanalyticsWebsitesRanksCategoryAnswer:
        """Category rank, as a table. The category rank of a website.

        Without dates: 28 rolling days that end three UTC days ago. `from` and `to` go together, and `from` must not be after `to`. `latest` does not go with `from` and `to`. Months in `latest` do not go with `isWindow=true`.

        Answer: Rows in `Data` with Domain and Rank. `TotalCount` can be 0 while `Data` has rows: test the array itself.

        :param keys: The website to look up. Takes exactly one ASCII domain such as example.com, at most 253 characters, without scheme, path, port or spaces; internationalised names in punycode.
        :param country: Numeric country code; 999 is worldwide. Takes an integer of 0 or more, in plain digits. Default: 999.
        :param from_: First day, inclusive. Goes with `to`, and not with `latest`. Takes a real date as YYYY-MM-DD or YYYY|MM|DD.
        :param to: Last day, inclusive. Goes with `from`, and not with `latest`. Takes a real date as YYYY-MM-DD or YYYY|MM|DD.
        :param latest: The newest days or complete months instead of explicit dates. Takes 1d to 366d (rolling days), or 1m, 2m, 3m, 6m (complete UTC months).
        :param include_sub_domains: Whether subdomains count.
        :param is_window: Whether the days are a rolling window. Without it: true for rolling days, false for months and explicit dates.
        :param web_source: Which visits count. Default: Total.
        :param time_granularity: The step of a series.
        """
        params = {
            "keys": keys,
            "country": country,
            "from": from_,
            "to": to,
            "latest": latest,
            "includeSubDomains": include_sub_domains,
            "isWindow": is_window,
            "webSource": web_source,
            "timeGranularity": time_granularity,
        }
        ask = Ask("GET", "/v1/siteanalytics/websites/ranks/category", query=query_of(params, COUNTRIES), paid=True)
        return self._transport.model(SiteanalyticsWebsitesRanksCategoryAnswer, ask, options)

    def channels(
        self,
        *,
        keys: str,
        country: Country | None = None,
        from_: str | date | None = None,
        to: str | date | None = None,
        latest: str | None = None,
        include_sub_domains: bool | None = None,
        is_window: bool | None = None,
        web_source: Literal["Total", "Desktop", "MobileWeb"] | None = None,
        time_granularity: Literal["Daily", "Monthly"] | None = None,
        options: CallOptions | None = None,
    ) -> SiteanalyticsWebsitesChannelsAnswer:
        """Marketing channels. Visits by channel. A share can be computed only when the sum is positive.

        Without dates: 28 rolling days that end three UTC days ago. `from` and `to` go together, and `from` must not be after `to`. `latest` does not go with `from` and `to`. Months in `latest` do not go with `isWindow=true`.

        Answer: `Data.Total.<domain>` (with webSource=Total) with visit counts by channel name.

        :param keys: The website to look up. Takes exactly one ASCII domain such as example.com, at most 253 characters, without scheme, path, port or spaces; internationalised names in punycode.
        :param country: Numeric country code; 999 is worldwide. Takes an integer of 0 or more, in plain digits. Default: 999.
        :param from_: First day, inclusive. Goes with `to`, and not with `latest`. Takes a real date as YYYY-MM-DD or YYYY|MM|DD.
        :param to: Last day, inclusive. Goes with `from`, and not with `latest`. Takes a real date as YYYY-MM-DD or YYYY|MM|DD.
        :param latest: The newest days or complete months instead of explicit dates. Takes 1d to 366d (rolling days), or 1m, 2m, 3m, 6m (complete UTC months).
        :param include_sub_domains: Whether subdomains count.
        :param is_window: Whether the days are a rolling window. Without it: true for rolling days, false for months and explicit dates.
        :param web_source: Which visits count. Default: Total.
        :param time_granularity: The step of a series.
        """
        params = {
            "keys": keys,
            "country": country,
            "from": from_,
            "to": to,
            "latest": latest,
            "includeSubDomains": include_sub_domains,
            "isWindow": is_window,
            "webSource": web_source,
            "timeGranularity": time_granularity,
        }
        ask = Ask("GET", "/v1/siteanalytics/websites/channels", query=query_of(params, COUNTRIES), paid=True)
        return self._transport.model(SiteanalyticsWebsitesChannelsAnswer, ask, options)

    def similar_sites(
        self,
        *,
        keys: str,
        country: Country | None = None,
        from_: str | date | None = None,
        to: str | date | None = None,
        include_sub_domains: bool | None = None,
        is_window: Literal[False] | None = None,
        time_granularity: Literal["Monthly"] | None = None,
        order_by: Literal["Affinity desc"] | None = None,
        options: CallOptions | None = None,
    ) -> SiteanalyticsWebsitesSimilarSitesAnswer:
        """Similar websites. Websites with a similar audience, by affinity.

        Without dates: the previous 3 complete UTC months. `from` and `to` go together, and `from` must not be after `to`.

        Answer: Rows in `Data` with Domain and Affinity.

        :param keys: The website to look up. Takes exactly one ASCII domain such as example.com, at most 253 characters, without scheme, path, port or spaces; internationalised names in punycode.
        :param country: Numeric country code; 999 is worldwide. Takes an integer of 0 or more, in plain digits. Default: 999.
        :param from_: First day, inclusive. Goes with `to`, and not with `latest`. Takes a real date as YYYY-MM-DD or YYYY|MM|DD.
        :param to: Last day, inclusive. Goes with `from`, and not with `latest`. Takes a real date as YYYY-MM-DD or YYYY|MM|DD.
        :param include_sub_domains: Whether subdomains count.
        :param is_window: Only false: this endpoint knows complete months, not rolling windows. Default: false.
        :param time_granularity: The step of a series.
        :param order_by: Only by affinity. Default: Affinity desc.
        """
        params = {
            "keys": keys,
            "country": country,
            "from": from_,
            "to": to,
            "includeSubDomains": include_sub_domains,
            "isWindow": is_window,
            "timeGranularity": time_granularity,
            "orderBy": order_by,
        }
        ask = Ask("GET", "/v1/siteanalytics/websites/similar-sites", query=query_of(params, COUNTRIES), paid=True)
        return self._transport.model(SiteanalyticsWebsitesSimilarSitesAnswer, ask, options)

    def similar_sites_suggestions(
        self,
        *,
        key: str,
        limit: int | None = None,
        country: Country | None = None,
        web_source: Literal["Total", "Desktop", "MobileWeb"] | None = None,
        options: CallOptions | None = None,
    ) -> Answers[SiteanalyticsWebsitesSimilarSitesSuggestionsAnswerItem]:
        """Suggestions of similar websites. Candidates for a comparison.

        Answer: A bare array of Domain, DomainWithoutSub, Rank (number) and Favicon. An empty array: no suggestions.

        :param key: The website to look up. Takes exactly one ASCII domain such as example.com, at most 253 characters, without scheme, path, port or spaces; internationalised names in punycode.
        :param limit: Most candidates. Takes an integer from 1 to 20, in plain digits. Default: 20.
        :param country: Numeric country code; 999 is worldwide. Takes an integer of 0 or more, in plain digits. Default: 999.
        :param web_source: Which visits count. Default: Total.
        """
        params = {
            "key": key,
            "limit": limit,
            "country": country,
            "webSource": web_source,
        }
        ask = Ask("GET", "/v1/siteanalytics/websites/similar-sites/suggestions", query=query_of(params, COUNTRIES), paid=True)
        return self._transport.list(SiteanalyticsWebsitesSimilarSitesSuggestionsAnswerItem, ask, options)

    def history_visits(
        self,
        *,
        keys: str,
        country: Literal["999", 999] | None = None,
        from_: str | date | None = None,
        to: str | date | None = None,
        latest: Literal["1m", "2m", "3m", "4m", "5m", "6m"] | None = None,
        include_sub_domains: bool | None = None,
        is_window: Literal[False] | None = None,
        web_source: Literal["Total", "Desktop", "MobileWeb"] | None = None,
        time_granularity: Literal["Monthly"] | None = None,
        options: CallOptions | None = None,
    ) -> SiteanalyticsWebsitesHistoryVisitsAnswer:
        """History of visits. The history of visits, month by month, for up to six complete months.

        Without dates: the previous 6 complete UTC months. `from` and `to` go together, and `from` must not be after `to`. `latest` does not go with `from` and `to`. Months in `latest` do not go with `isWindow=true`. Explicit dates must be complete months inside the last 6.

        Answer: `Data.<domain>.<source>` as Key/Value points, in visits. Source names are kept as given.

        :param keys: The website to look up. Takes exactly one ASCII domain such as example.com, at most 253 characters, without scheme, path, port or spaces; internationalised names in punycode.
        :param country: Only 999, worldwide. Default: 999.
        :param from_: First day, inclusive. Goes with `to`, and not with `latest`. Takes a real date as YYYY-MM-DD or YYYY|MM|DD.
        :param to: Last day, inclusive. Goes with `from`, and not with `latest`. Takes a real date as YYYY-MM-DD or YYYY|MM|DD.
        :param latest: The newest days or complete months instead of explicit dates. Takes 1m, 2m, 3m, 4m, 5m, 6m (complete UTC months).
        :param include_sub_domains: Whether subdomains count.
        :param is_window: Only false: this endpoint knows complete months, not rolling windows. Default: false.
        :param web_source: Which visits count. Default: Total.
        :param time_granularity: The step of a series.
        """
        params = {
            "keys": keys,
            "country": country,
            "from": from_,
            "to": to,
            "latest": latest,
            "includeSubDomains": include_sub_domains,
            "isWindow": is_window,
            "webSource": web_source,
            "timeGranularity": time_granularity,
        }
        ask = Ask("GET", "/v1/siteanalytics/websites/history/visits", query=query_of(params, COUNTRIES), paid=True)
        return self._transport.model(SiteanalyticsWebsitesHistoryVisitsAnswer, ask, options)

    def history_bounce_rate(
        self,
        *,
        keys: str,
        country: Literal["999", 999] | None = None,
        from_: str | date | None = None,
        to: str | date | None = None,
        latest: Literal["1m", "2m", "3m", "4m", "5m", "6m"] | None = None,
        include_sub_domains: bool | None = None,
        is_window: Literal[False] | None = None,
        web_source: Literal["Total", "Desktop", "MobileWeb"] | None = None,
        time_granularity: Literal["Monthly"] | None = None,
        options: CallOptions | None = None,
    ) -> SiteanalyticsWebsitesHistoryBounceRateAnswer:
        """History of the bounce rate. The history of the bounce rate, month by month, for up to six complete months.

        Without dates: the previous 6 complete UTC months. `from` and `to` go together, and `from` must not be after `to`. `latest` does not go with `from` and `to`. Months in `latest` do not go with `isWindow=true`. Explicit dates must be complete months inside the last 6.

        Answer: `Data.<domain>.<source>` as Key/Value points, in a ratio. Source names are kept as given.

        :param keys: The website to look up. Takes exactly one ASCII domain such as example.com, at most 253 characters, without scheme, path, port or spaces; internationalised names in punycode.
        :param country: Only 999, worldwide. Default: 999.
        :param from_: First day, inclusive. Goes with `to`, and not with `latest`. Takes a real date as YYYY-MM-DD or YYYY|MM|DD.
        :param to: Last day, inclusive. Goes with `from`, and not with `latest`. Takes a real date as YYYY-MM-DD or YYYY|MM|DD.
        :param latest: The newest days or complete months instead of explicit dates. Takes 1m, 2m, 3m, 4m, 5m, 6m (complete UTC months).
        :param include_sub_domains: Whether subdomains count.
        :param is_window: Only false: this endpoint knows complete months, not rolling windows. Default: false.
        :param web_source: Which visits count. Default: Total.
        :param time_granularity: The step of a series.
        """
        params = {
            "keys": keys,
            "country": country,
            "from": from_,
            "to": to,
            "latest": latest,
            "includeSubDomains": include_sub_domains,
            "isWindow": is_window,
            "webSource": web_source,
            "timeGranularity": time_granularity,
        }
        ask = Ask("GET", "/v1/siteanalytics/websites/history/bounce-rate", query=query_of(params, COUNTRIES), paid=True)
        return self._transport.model(SiteanalyticsWebsitesHistoryBounceRateAnswer, ask, options)

    def history_visit_duration(
        self,
        *,
        keys: str,
        country: Literal["999", 999] | None = None,
        from_: str | date | None = None,
        to: str | date | None = None,
        latest: Literal["1m", "2m", "3m", "4m", "5m", "6m"] | None = None,
        include_sub_domains: bool | None = None,
        is_window: Literal[False] | None = None,
        web_source: Literal["Total", "Desktop", "MobileWeb"] | None = None,
        time_granularity: Literal["Monthly"] | None = None,
        options: CallOptions | None = None,
    ) -> SiteanalyticsWebsitesHistoryVisitDurationAnswer:
        """History of the visit duration. The history of the visit duration, month by month, for up to six complete months.

        Without dates: the previous 6 complete UTC months. `from` and `to` go together, and `from` must not be after `to`. `latest` does not go with `from` and `to`. Months in `latest` do not go with `isWindow=true`. Explicit dates must be complete months inside the last 6.

        Answer: `Data.<domain>.<source>` as Key/Value points, in seconds per visit. Source names are kept as given.

        :param keys: The website to look up. Takes exactly one ASCII domain such as example.com, at most 253 characters, without scheme, path, port or spaces; internationalised names in punycode.
        :param country: Only 999, worldwide. Default: 999.
        :param from_: First day, inclusive. Goes with `to`, and not with `latest`. Takes a real date as YYYY-MM-DD or YYYY|MM|DD.
        :param to: Last day, inclusive. Goes with `from`, and not with `latest`. Takes a real date as YYYY-MM-DD or YYYY|MM|DD.
        :param latest: The newest days or complete months instead of explicit dates. Takes 1m, 2m, 3m, 4m, 5m, 6m (complete UTC months).
        :param include_sub_domains: Whether subdomains count.
        :param is_window: Only false: this endpoint knows complete months, not rolling windows. Default: false.
        :param web_source: Which visits count. Default: Total.
        :param time_granularity: The step of a series.
        """
        params = {
            "keys": keys,
            "country": country,
            "from": from_,
            "to": to,
            "latest": latest,
            "includeSubDomains": include_sub_domains,
            "isWindow": is_window,
            "webSource": web_source,
            "timeGranularity": time_granularity,
        }
        ask = Ask("GET", "/v1/siteanalytics/websites/history/visit-duration", query=query_of(params, COUNTRIES), paid=True)
        return self._transport.model(SiteanalyticsWebsitesHistoryVisitDurationAnswer, ask, options)

    def history_pages_per_visit(
        self,
        *,
        keys: str,
        country: Literal["999", 999] | None = None,
        from_: str | date | None = None,
        to: str | date | None = None,
        latest: Literal["1m", "2m", "3m", "4m", "5m", "6m"] | None = None,
        include_sub_domains: bool | None = None,
        is_window: Literal[False] | None = None,
        web_source: Literal["Total", "Desktop", "MobileWeb"] | None = None,
        time_granularity: Literal["Monthly"] | None = None,
        options: CallOptions | None = None,
    ) -> SiteanalyticsWebsitesHistoryPagesPerVisitAnswer:
        """History of pages per visit. The history of pages per visit, month by month, for up to six complete months.

        Without dates: the previous 6 complete UTC months. `from` and `to` go together, and `from` must not be after `to`. `latest` does not go with `from` and `to`. Months in `latest` do not go with `isWindow=true`. Explicit dates must be complete months inside the last 6.

        Answer: `Data.<domain>.<source>` as Key/Value points, in pages per visit. Source names are kept as given.

        :param keys: The website to look up. Takes exactly one ASCII domain such as example.com, at most 253 characters, without scheme, path, port or spaces; internationalised names in punycode.
        :param country: Only 999, worldwide. Default: 999.
        :param from_: First day, inclusive. Goes with `to`, and not with `latest`. Takes a real date as YYYY-MM-DD or YYYY|MM|DD.
        :param to: Last day, inclusive. Goes with `from`, and not with `latest`. Takes a real date as YYYY-MM-DD or YYYY|MM|DD.
        :param latest: The newest days or complete months instead of explicit dates. Takes 1m, 2m, 3m, 4m, 5m, 6m (complete UTC months).
        :param include_sub_domains: Whether subdomains count.
        :param is_window: Only false: this endpoint knows complete months, not rolling windows. Default: false.
        :param web_source: Which visits count. Default: Total.
        :param time_granularity: The step of a series.
        """
        params = {
            "keys": keys,
            "country": country,
            "from": from_,
            "to": to,
            "latest": latest,
            "includeSubDomains": include_sub_domains,
            "isWindow": is_window,
            "webSource": web_source,
            "timeGranularity": time_granularity,
        }
        ask = Ask("GET", "/v1/siteanalytics/websites/history/pages-per-visit", query=query_of(params, COUNTRIES), paid=True)
        return self._transport.model(SiteanalyticsWebsitesHistoryPagesPerVisitAnswer, ask, options)


class Analytics:
    """Statistics of websites and search keywords."""

    def __init__(self, transport: Transport) -> None:
        self.keywords = Keywords(transport)
        self.websites = Websites(transport)
